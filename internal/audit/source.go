package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Source is somewhere to read logs from: a node, the log's own stream with an
// auditor's rights, or an [Export]. It checks nothing that a reader can check:
// hashes and order are the reader's business.
type Source interface {
	// Find is the conversation that an id, a name, or the beginning of either
	// means, in a tenant or, with none, in all that can be read here. Errors: a
	// *domain.Refusal.
	Find(ctx context.Context, tenant, ref string) (domain.Key, error)
	// Conversations lists those of a tenant or, with none, all.
	Conversations(ctx context.Context, tenant string) ([]domain.Key, error)
	// Read calls fn with each commit of a conversation, in the order of the log.
	Read(ctx context.Context, key domain.Key, fn func(Entry) error) error
	// Body fetches a text or file that is not in the log itself, whole and with
	// its hash checked.
	Body(ctx context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error)
	Close() error
}

// Entry is a commit as the log's stream has it.
type Entry struct {
	Key domain.Key
	// Seq and Header of the message; 0 and nil where a source was not asked for
	// more than the commit.
	Seq    uint64
	Header map[string][]string
	// Sealed is the commit's bytes, with its hash.
	Sealed []byte
}

// Subject of the entry in the log's stream.
func (e Entry) Subject() string { return subject(e.Key) }

const subjectPrefix = "rollcall.events."

func subject(k domain.Key) string { return fmt.Sprint(subjectPrefix, k.Partition(), ".", k) }

func parseSubject(text string) (domain.Key, bool) {
	parts := strings.Split(strings.TrimPrefix(text, subjectPrefix), ".")
	if len(parts) != 3 {
		return domain.Key{}, false
	}
	k := domain.Key{Tenant: parts[1], Conversation: parts[2]}
	return k, k.Valid() && subject(k) == text
}

// Directory names the conversations of a log that is read from its beginning.
type Directory struct {
	keys  []domain.Key
	names map[domain.Key]string
}

// Add takes a commit in and reports whether it is the first of a conversation.
func (d *Directory) Add(key domain.Key, sealed []byte) bool {
	if _, known := d.names[key]; known {
		return false
	}
	if d.names == nil {
		d.names = map[domain.Key]string{}
	}
	d.keys = append(d.keys, key)
	d.names[key] = ""
	if c, err := domain.Unseal(sealed); err == nil {
		for _, e := range c.GetEvents() {
			if o := e.GetConversationOpened(); o != nil {
				d.names[key] = o.GetName()
			}
		}
	}
	return true
}

// Keys are the conversations, of a tenant or all, in the order in which they
// began.
func (d *Directory) Keys(tenant string) []domain.Key {
	return slices.DeleteFunc(slices.Clone(d.keys), func(k domain.Key) bool { return tenant != "" && k.Tenant != tenant })
}

// Find is the conversation that ref means in a tenant or, with none, in all: an
// exact id or name, or the only one whose id or name begins so.
func (d *Directory) Find(tenant, ref string) (domain.Key, error) {
	ref = norm.NFC.String(strings.TrimSpace(ref))
	lower := strings.ToLower(ref)
	var exact, begins []domain.Key
	for _, k := range d.Keys(tenant) {
		name := d.names[k]
		switch {
		case k.Conversation == ref, name == ref && name != "":
			exact = append(exact, k)
		case strings.HasPrefix(k.Conversation, lower), strings.HasPrefix(strings.ToLower(name), lower):
			begins = append(begins, k)
		}
	}
	found := exact
	if len(found) == 0 {
		found = begins
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 || ref == "":
		return domain.Key{}, domain.Refuse("conversation-not-found", fmt.Sprintf("there is no conversation %q", short(ref)),
			fmt.Sprintf("%d were looked through", len(d.Keys(tenant))), "rollcall verify, without a name, lists those that can be read")
	}
	var several []string
	for _, k := range found[:min(len(found), 5)] {
		several = append(several, fmt.Sprintf("%s (%s)", short(d.names[k]), k))
	}
	return domain.Key{}, domain.Refuse("conversation-ambiguous", fmt.Sprintf("%q names more than one conversation", short(ref)),
		"it may be "+strings.Join(several, ", "), "give more of the id or of the name, or its tenant")
}

func short(text string) string {
	if r := []rune(text); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return text
}
