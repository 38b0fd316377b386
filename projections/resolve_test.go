package projections

import (
	"errors"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
)

func TestPick(t *testing.T) {
	all := []named{
		{"01aa", "Harbor"},
		{"01ab", "harbor lights"},
		{"02cc", "Café"},
		{"02cd", "twin"},
		{"03ee", "twin"},
		{"04ff", "01aa"},
	}
	for _, c := range []struct {
		ref, id string
		several int
	}{
		{"01aa", "01aa", 0},     // an id wins over a name
		{"01AB", "01ab", 0},     // ids are lower case
		{"Harbor", "01aa", 0},   // a whole name wins over the beginning of another
		{"harbor", "01aa", 0},   // also in other letters
		{"harbor l", "01ab", 0}, // the beginning of a name
		{"  Harbor ", "01aa", 0},
		{"har", "", 2},
		{"02", "", 2},
		{"02cc", "02cc", 0},
		{"Cafe\u0301", "02cc", 0}, // the same letters, composed otherwise
		{"twin", "", 2},
		{"03", "03ee", 0},
		{"nothing", "", 0},
		{"", "", 0},
		{" ", "", 0},
	} {
		id, several := pick(c.ref, all)
		if id != c.id || len(several) != c.several {
			t.Errorf("pick(%q) = %q and %d more, want %q and %d", c.ref, id, len(several), c.id, c.several)
		}
	}
}

func TestNearby(t *testing.T) {
	all := []named{{"01aa", "Harbor"}, {"02bb", "Lighthouse"}}
	for ref, want := range map[string]string{
		"habror":     "Harbor (01aa)",
		"LIGHTHOSE":  "Lighthouse (02bb)",
		"submarine":  "",
		"01ab":       "Harbor (01aa)",
		"completely": "",
	} {
		if got := choices(nearby(ref, all)); got != want {
			t.Errorf("%q may be %q, want %q", ref, got, want)
		}
	}
}

// refused checks that err is a refusal with the code, and that it says enough.
func refused(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok || r.Code != code {
		t.Errorf("got %v, want a refusal %s", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(r.What+r.Why+r.Try, w) {
			t.Errorf("%v does not name %q", r, w)
		}
	}
}
