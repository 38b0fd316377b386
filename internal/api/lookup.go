package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// candidate is something with an id and a name.
type candidate struct{ id, name string }

// pick finds what ref means: an exact id, an exact name, or a unique prefix of
// either. several is what it may mean when that is not one.
func pick(ref string, all []candidate) (id string, several []candidate) {
	ref = norm.NFC.String(strings.TrimSpace(ref))
	lower := strings.ToLower(ref)
	var prefixed []candidate
	for _, c := range all {
		switch {
		case c.id == ref || c.name == ref: // names are unique in a conversation
			return c.id, nil
		case strings.HasPrefix(c.id, lower), strings.HasPrefix(strings.ToLower(c.name), lower):
			prefixed = append(prefixed, c)
		}
	}
	if len(prefixed) == 1 {
		return prefixed[0].id, nil
	}
	return "", prefixed
}

// resolve finds the conversation that ref means in a tenant. A full id is
// taken as it is: it need not be in the read model yet.
func (s *Server) resolve(ctx context.Context, tenant, ref string) (domain.Key, error) {
	key := domain.Key{Tenant: tenant, Conversation: ref}
	if ref == "" {
		return key, domain.Refuse("request-invalid", "no conversation is named", "", "give its id, its name or a unique prefix of one")
	}
	if IsID(ref) {
		return key, nil
	}
	if err := CheckText("the conversation's name", ref, 1<<10); err != nil {
		return key, err
	}
	behind := s.catchUp(ctx)
	found, err := s.cfg.Views.Resolve(ctx, tenant, ref)
	if !unknown(err) {
		return found, err
	}
	// Before anybody hears that there is none: that is what the log says, and
	// not only a server that was cut off from the others.
	if behind == nil {
		if behind = s.current(ctx); behind == nil {
			behind = s.catchUp(ctx)
		}
		if found, err = s.cfg.Views.Resolve(ctx, tenant, ref); !unknown(err) {
			return found, err
		}
	}
	return found, s.surely(behind, ref, err)
}

// unknown recognises that there is no such conversation.
func unknown(err error) bool {
	r, ok := errors.AsType[*domain.Refusal](err)
	return ok && r.Code == "conversation-not-found"
}

// surely is err, that there is no such conversation, unless this node could not
// read what the log holds.
func (s *Server) surely(behind error, ref string, err error) error {
	if behind == nil {
		return err
	}
	return domain.Refuse(unavailable, "it is not known whether there is a conversation "+quote(ref),
		"this node could not read what the log holds now: "+reason(behind), tryLater)
}

// current waits a while until the log's leader is known to be one.
func (s *Server) current(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, currentTime)
	defer cancel()
	return s.cfg.Store.Current(ctx)
}

// currentTime is enough for a leader that hears from the others every second.
const currentTime = 3 * time.Second

// catchUp lets the read models see what the log holds now, so that a name that
// was just given is known. When that takes too long they answer as they are, and
// whoever tells of it has to say so.
func (s *Server) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	seq, err := s.cfg.Store.LastSeq(ctx)
	if err == nil {
		err = s.cfg.Views.CatchUp(ctx, seq)
	}
	if err != nil {
		s.cfg.Log.Warn("the read models are behind the log", "error", err)
	}
	return err
}

const catchUpTime = 2 * time.Second

// IsID reports whether ref has the shape of a conversation's id.
func IsID(ref string) bool {
	return len(ref) == 26 && strings.IndexFunc(ref, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z')
	}) < 0
}

// mustExist refuses a conversation that has no log, before anything is put
// into the inbox for it.
func (s *Server) mustExist(ctx context.Context, key domain.Key) error {
	_, err := s.cfg.Store.At(ctx, key, []uint64{1})
	if errors.Is(err, eventstore.ErrNotFound) {
		return s.confirmed(ctx, key, conversationUnknown(key.Conversation))
	}
	return logError(key, err)
}

// confirmed is err. But that there is no such conversation, which may be what a
// server says that was cut off, is said only when the log's leader is one.
func (s *Server) confirmed(ctx context.Context, key domain.Key, err error) error {
	if !unknown(err) {
		return err
	}
	return s.surely(s.current(ctx), key.Conversation, err)
}

// member finds the id of the member that ref means.
func (f *fold) member(ref string) (string, error) {
	all := make([]candidate, 0, len(f.state.Members))
	for _, m := range f.state.Members {
		all = append(all, candidate{m.ID, m.Name})
	}
	return pickMember(ref, all)
}

// Pick finds the display name of the member that ref means.
func (n Names) Pick(ref string) (string, error) {
	var all []candidate
	for id, name := range n {
		all = append(all, candidate{id, name})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(ordinal(a.id), ordinal(b.id)) })
	id, err := pickMember(ref, all)
	return n.Of(id), err
}

func pickMember(ref string, all []candidate) (string, error) {
	if strings.EqualFold(ref, domain.LeadName) {
		return domain.LeadID, nil
	}
	id, several := pick(ref, all)
	switch {
	case id != "":
		return id, nil
	case len(several) > 1:
		return "", domain.Refuse("member-ambiguous", quote(ref)+" names more than one member",
			choices(several, 5), "give more of the name, or the id")
	}
	return "", domain.Refuse("member-not-found", "there is no member "+quote(ref),
		"the members are "+choices(all, 20), "use one of these names or ids")
}

func choices(all []candidate, most int) string {
	words := make([]string, 0, len(all))
	for i, c := range all {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		words = append(words, fmt.Sprintf("%s (%s)", c.name, c.id))
	}
	return strings.Join(words, ", ")
}

func quote(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

func conversationUnknown(ref string) error {
	return domain.Refuse("conversation-not-found", "there is no conversation "+quote(ref), "",
		"rollcall ls lists those there are")
}

func versionUnknown(key domain.Key, want, have uint64) error {
	if have == 0 {
		return conversationUnknown(key.Conversation)
	}
	return domain.Refuse("version-not-found", fmt.Sprintf("conversation %s has no version %d", key.Conversation, want),
		fmt.Sprintf("its log ends at %d", have), "leave the version out to read it as it stands")
}
