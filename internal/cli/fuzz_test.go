package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
)

// FuzzParseBudget: a budget is a limit that can be written again, or a refusal
// that says what to write.
func FuzzParseBudget(f *testing.F) {
	for _, s := range []string{"2.50", "0", "300000t", "300000tokens", "0x1p-2", "1_000", "t", "-1", "NaN", "Inf", "1e-7", "1e9", " 5t", "9223372036854775807t", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := parseBudget(text)
		if err != nil {
			if r, ok := errors.AsType[*domain.Refusal](err); !ok || b != nil || r.What == "" || r.Why == "" || r.Try == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if b.GetTokens() > 0 && b.GetCostMicros() > 0 || b.GetCostMicros() > 1e15 || b.GetTokens() > 1<<63-1 {
			t.Fatalf("%q is %v", text, b)
		}
		written := fmt.Sprintf("%d.%06d", b.GetCostMicros()/1e6, b.GetCostMicros()%1e6)
		if b.GetTokens() > 0 {
			written = fmt.Sprintf("%dt", b.GetTokens())
		}
		if again, err := parseBudget(written); err != nil || again.GetTokens() != b.GetTokens() || again.GetCostMicros() != b.GetCostMicros() {
			t.Errorf("%q is %v, written again as %s it is %v, %v", text, b, written, again, err)
		}
	})
}
