package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Marshal writes a snapshot: JSON, the same for equal states.
func (s *State) Marshal() ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write snapshot of %s: %w", s.Key, err)
	}
	return data, nil
}

// Unmarshal reads what Marshal wrote.
func Unmarshal(data []byte) (*State, error) {
	s := new(State)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return s, nil
}

// Hash is equal for equal states, however they came about: decided, folded
// from the log, or read from a snapshot.
func (s *State) Hash() string {
	data, err := s.Marshal()
	if err != nil { // every field is plain data: only a bug gets here
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
