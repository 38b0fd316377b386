package domain

import "fmt"

// Refusal is the domain's no: a normal answer, not a failure. It says what was
// refused, why, and what to try instead. Its code is stable and listed in
// docs/errors.md.
type Refusal struct {
	Code string
	What string
	Why  string
	Try  string
}

// Refuse makes a Refusal.
func Refuse(code, what, why, try string) *Refusal {
	return &Refusal{Code: code, What: what, Why: why, Try: try}
}

func (r *Refusal) Error() string {
	s := r.What
	if r.Why != "" {
		s += ": " + r.Why
	}
	if r.Try != "" {
		s += " (" + r.Try + ")"
	}
	return fmt.Sprintf("%s [%s]", s, r.Code)
}

// Is makes two refusals of one code equal, also after a trip over NATS.
func (r *Refusal) Is(target error) bool {
	t, ok := target.(*Refusal)
	return ok && t.Code == r.Code
}
