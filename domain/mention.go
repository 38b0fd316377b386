package domain

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Mentioned is the name that a text begins with after an @: the longest of the
// names that is there letter by letter, and ends there. Empty: it begins with none.
func Mentioned(text string, names []string) string {
	words, ok := strings.CutPrefix(text, "@")
	if !ok {
		return ""
	}
	words = norm.NFC.String(words)
	longest := slices.SortedFunc(slices.Values(names), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, name := range longest {
		if rest, ok := strings.CutPrefix(words, name); ok && name != "" && wordEnds(rest) {
			return name
		}
	}
	return ""
}

// joiners stand inside longer names, and in paths: @Back-end and @Backend/api.json
// name nobody called Back or Backend.
const joiners = "-_./\\@'’&+"

// wordEnds reports whether a name that rest follows is over.
func wordEnds(rest string) bool {
	next, size := utf8.DecodeRuneInString(rest)
	if rest == "" || unicode.IsSpace(next) {
		return true
	}
	if strings.ContainsRune(joiners, next) {
		after, _ := utf8.DecodeRuneInString(rest[size:])
		return !unicode.IsLetter(after) && !unicode.IsDigit(after) && !unicode.IsMark(after)
	}
	return unicode.IsPunct(next)
}

// addressee is whom the operator's words are for: the member that they mention
// at their start when they are sent to the Lead, else who they are sent to.
// Words that are stored apart are not looked into.
func (s *State) addressee(to *Member, words string) *Member {
	if !to.IsLead() {
		return to
	}
	var names []string
	for _, m := range s.Members {
		if m.Alive() && m.Role == rollcallv1.MemberRole_MEMBER_ROLE_MEMBER {
			names = append(names, m.Name)
		}
	}
	if m := s.Named(Mentioned(words, names)); m != nil {
		return m
	}
	return to
}
