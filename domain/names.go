package domain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fixed parties that are not members.
const (
	// Operator is the human or program outside; in tasks and as a recipient it
	// is written User.
	Operator  = "operator"
	Framework = "framework"
	User      = "user"
	// LeadID is the short id of the Lead, LeadName its fixed display name.
	LeadID   = "lead"
	LeadName = "Lead"
)

// maxName is the longest name of a member, in runes. It is at the same time the
// name of a directory, when files are saved: disks hold maxElement bytes.
const (
	maxName    = 64
	maxElement = 255
)

// reserved names belong to the fixed parties; nothing may look like one.
var reserved = map[string]bool{"lead": true, User: true, Operator: true, Framework: true}

// Name normalises a name: NFC, no space around it.
func Name(name string) string { return strings.TrimSpace(norm.NFC.String(name)) }

// memberName is the normalised name of a new member, or why it cannot be one.
func (s *State) memberName(raw string) (string, *Refusal) {
	name := Name(raw)
	what := fmt.Sprintf("the name %q is refused", cut(name, 4*maxName))
	if why := badName(name); why != "" {
		return "", Refuse("name-invalid", what, why, fmt.Sprintf("choose 1 to %d characters of any script, without control characters and slashes", maxName))
	}
	if reserved[skeleton(name)] {
		return "", Refuse("name-reserved", what, "it reads like Lead, user, operator or framework", "choose another name")
	}
	if _, isID := memberIndex(name); isID {
		return "", Refuse("name-reserved", what, "it reads like a member's id", "choose another name")
	}
	if taken := s.Named(name); taken != nil {
		why := "a member of that name is in the team"
		if !taken.Alive() {
			why = "a member of that name was in the conversation before, and names are never used again"
		}
		return "", Refuse("name-taken", what, why, "choose another name")
	}
	return name, nil
}

// MemberName is the normalised name of a member of a new conversation, or why
// it cannot be one.
func MemberName(raw string) (string, *Refusal) { return new(State).memberName(raw) }

// TypeName is the normalised name of an agent type, or why it cannot be one.
func TypeName(raw string) (string, *Refusal) {
	name := Name(raw)
	if why := badName(name); why != "" {
		return "", Refuse("agent-type-invalid", fmt.Sprintf("agent type %q is refused", cut(Clean(name), 4*maxName)), "its name is no name: "+why, "give it another name")
	}
	return name, nil
}

func badName(name string) string {
	switch n := utf8.RuneCountInString(name); {
	case !utf8.ValidString(name):
		return "it is not valid UTF-8"
	case n == 0:
		return "it is empty"
	case n > maxName:
		return fmt.Sprintf("it has %d characters", n)
	case len(name) > maxElement:
		return fmt.Sprintf("it has %d bytes, more than a directory's name can have", len(name))
	case name == "." || name == "..":
		return "it means a directory, where the member's files are saved"
	}
	for _, r := range name {
		switch {
		case r == '/' || r == '\\':
			return "it contains a slash, which separates names from paths"
		case r == '\u200C' || r == '\u200D': // joiners: scripts and emoji need them
		case r != ' ' && unicode.In(r, unicode.C, unicode.Z):
			return fmt.Sprintf("it contains the invisible character U+%04X", r)
		}
	}
	return ""
}

// lookalikes of the letters in the reserved names, after NFKD and lower case.
var lookalikes = map[rune]rune{
	'|': 'l', '1': 'l', 'ı': 'l', 'ӏ': 'l', 'І': 'l', 'ǀ': 'l', 'ι': 'l', 'ⵏ': 'l', 'ߊ': 'l', 'ᛁ': 'l', 'ʟ': 'l', 'ꮮ': 'l', 'Ꮮ': 'l',
	'е': 'e', 'ҽ': 'e', 'ε': 'e', 'ɛ': 'e', '3': 'e', 'ᴇ': 'e', 'є': 'e', 'ҿ': 'e', 'ꬲ': 'e', 'ⴹ': 'e', 'Ꭼ': 'e', 'ꭼ': 'e',
	'а': 'a', 'α': 'a', 'ɑ': 'a', '4': 'a', '@': 'a', 'ᴀ': 'a', 'ꭺ': 'a', 'Ꭺ': 'a',
	'ԁ': 'd', 'ɗ': 'd', 'ᴅ': 'd', 'đ': 'd', 'ꮷ': 'd', 'Ꭰ': 'd', 'ꭰ': 'd',
	'о': 'o', 'ο': 'o', '0': 'o', 'օ': 'o', 'ᴏ': 'o', 'ø': 'o', 'σ': 'o', 'ס': 'o', 'ഠ': 'o', '۵': 'o', 'ჿ': 'o',
	'р': 'p', 'ρ': 'p', 'ᴘ': 'p', 'þ': 'p', 'Ꮲ': 'p', 'ꮲ': 'p',
	'г': 'r', 'ʀ': 'r', 'ᴦ': 'r', 'ꭇ': 'r', 'ꭈ': 'r', 'я': 'r', 'Ꭱ': 'r', 'ꭱ': 'r',
	'т': 't', 'τ': 't', '7': 't', 'ᴛ': 't', 'ŧ': 't', 'Ꭲ': 't', 'ꭲ': 't', '+': 't',
	'ѕ': 's', '5': 's', '$': 's', 'ꜱ': 's', 'ʂ': 's', 'Ꮪ': 's', 'ꮪ': 's',
	'υ': 'u', 'ս': 'u', 'ʋ': 'u', 'ц': 'u', 'ᴜ': 'u', 'μ': 'u', 'ꭎ': 'u', 'ꭒ': 'u',
	'к': 'k', 'κ': 'k', 'ᴋ': 'k', 'ҡ': 'k', 'Ꮶ': 'k', 'ꮶ': 'k',
	'м': 'm', 'ᴍ': 'm', 'ʍ': 'm', 'Ꮇ': 'm', 'ꮇ': 'm', 'ϻ': 'm',
	'ѡ': 'w', 'ԝ': 'w', 'ω': 'w', 'ш': 'w', 'ᴡ': 'w', 'ա': 'w', 'ɯ': 'w', 'Ꮃ': 'w', 'ꮃ': 'w',
	'ƒ': 'f', 'ꞙ': 'f', 'ϝ': 'f', 'ք': 'f', 'ꜰ': 'f', 'ẝ': 'f', 'ſ': 'f',
}

// skeleton is how a name looks at a glance: without case, marks, spaces,
// joints and invisible characters, and with look-alikes told as Latin.
func skeleton(name string) string {
	return look(strings.ToLower(norm.NFKD.String(strings.ReplaceAll(name, "I", "l"))))
}

func look(folded string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(folded) {
		if like, ok := lookalikes[r]; ok {
			r = like
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Recipient finds the living member that a tool call or a task's owner names:
// its exact name after normalising, with "lead" in any case for the Lead. It
// is nil when nobody is meant.
func (s *State) Recipient(name string) *Member {
	name = Name(name)
	if strings.EqualFold(name, LeadName) {
		return s.Lead()
	}
	if m := s.Named(name); m != nil && m.Alive() {
		return m
	}
	return nil
}

// ownerName normalises a task's owner: any string, with the aliases of the
// Lead and the operator.
func ownerName(raw string) string {
	name := Name(raw)
	switch {
	case strings.EqualFold(name, LeadName):
		return LeadName
	case strings.EqualFold(name, User), strings.EqualFold(name, Operator):
		return User
	}
	return name
}

// DisplayName of a member id or a fixed party.
func (s *State) DisplayName(id string) string {
	if m := s.Member(id); m != nil {
		return m.Name
	}
	if id == User {
		return Operator
	}
	return id
}

// aliveNames are the names one can write to.
func (s *State) aliveNames() []string {
	var names []string
	for _, m := range s.Members {
		if m.Alive() && !m.IsSubagent() {
			names = append(names, m.Name)
		}
	}
	return names
}

// quoteAll lists names for a sentence.
func quoteAll(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
