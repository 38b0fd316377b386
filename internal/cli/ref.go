package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// ref is a parsed CONV[/MEMBER][@VERSION].
type ref struct {
	conversation, member string
	version              uint64
}

// parseRef reads what a user wrote for a conversation. A name may hold any
// character but the last '/' and a trailing '@' with digits have a meaning.
func parseRef(text string) (ref, error) {
	if err := api.CheckText("the name of the conversation", text, 4<<10); err != nil {
		return ref{}, err
	}
	r := ref{conversation: text}
	if i := strings.LastIndexByte(text, '@'); i >= 0 && digits(text[i+1:]) {
		v, err := strconv.ParseUint(text[i+1:], 10, 64)
		if err != nil || v == 0 {
			return r, domain.Refuse("usage", fmt.Sprintf("%q names no version", text), "versions count from 1", "rollcall log CONV shows them")
		}
		r.conversation, r.version = text[:i], v
	}
	if i := strings.LastIndexByte(r.conversation, '/'); i >= 0 {
		r.conversation, r.member = r.conversation[:i], r.conversation[i+1:]
	}
	if r.conversation == "" {
		return r, domain.Refuse("usage", fmt.Sprintf("%q names no conversation", text), "", "rollcall ls lists them")
	}
	return r, nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// whole refuses a member or version where a command works on a whole
// conversation as it stands.
func (r ref) whole() error {
	if r.member != "" {
		return domain.Refuse("usage", "this command is about a whole conversation, not a member", "got /"+r.member, "leave the member out")
	}
	return r.now()
}

// now refuses a version where a command changes something.
func (r ref) now() error {
	if r.version > 0 {
		return domain.Refuse("usage", "the past cannot be changed", fmt.Sprintf("got @%d", r.version), "leave the version out")
	}
	return nil
}

func (r ref) read() api.ReadRequest {
	return api.ReadRequest{Conversation: r.conversation, Member: r.member, At: r.version}
}
