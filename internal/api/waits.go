package api

import (
	"time"

	"github.com/rollcall-dev/rollcall/domain"
)

// Wait is a question that its sender sleeps on until it is answered.
type Wait struct {
	// Member that waits, by its display name and its id.
	Member   string `json:"member"`
	MemberID string `json:"member_id"`
	// For is whom it asked, by display name; user is the operator.
	For string `json:"for"`
	// Message is the question: what answers it names it in reply_to.
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

func waitsOf(s *domain.State) []Wait {
	found := []Wait{}
	for _, m := range s.Members {
		for _, w := range m.Waits {
			found = append(found, Wait{Member: m.Name, MemberID: m.ID, For: s.DisplayName(w.Awaited), Message: w.Message, Since: w.Since})
		}
	}
	return found
}
