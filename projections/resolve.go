package projections

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/nearest"
)

// named is something that a user may refer to by id, by name, or by the
// beginning of either.
type named struct{ id, name string }

// Resolve finds the conversation that ref means in a tenant: an id, a name, or
// what only one id or name begins with. Errors: a *domain.Refusal that names
// the ones it may have meant.
func (db *DB) Resolve(ctx context.Context, tenant, ref string) (domain.Key, error) {
	key := domain.Key{Tenant: tenant}
	err := db.query(ctx, "conversations", func(r reader) error {
		all, err := r.named("SELECT id, name FROM conversations WHERE tenant = ? ORDER BY conv", tenant)
		if err != nil {
			return err
		}
		id, several := pick(ref, all)
		switch {
		case id != "":
			key.Conversation = id
			return nil
		case len(several) > 0:
			return domain.Refuse("conversation-ambiguous", fmt.Sprintf("%q names more than one conversation", clip(ref)),
				"it may be "+choices(several), "give more of the id or of the name")
		}
		return unknownConversation(ref, all)
	})
	return key, err
}

// Member finds the id of the member that ref means in a conversation, in the
// same way. Errors: a *domain.Refusal that names the valid ones.
func (db *DB) Member(ctx context.Context, key domain.Key, ref string) (string, error) {
	var found string
	err := db.query(ctx, "members", func(r reader) error {
		conv, err := r.row(key)
		if err != nil {
			return err
		}
		all, err := r.named("SELECT id, name FROM members WHERE conv = ? ORDER BY ordinal", conv)
		if err != nil {
			return err
		}
		id, several := pick(ref, all)
		switch {
		case id != "":
			found = id
			return nil
		case len(several) > 0:
			return domain.Refuse("member-ambiguous", fmt.Sprintf("%q names more than one member", clip(ref)),
				"it may be "+choices(several), "give more of the name, or the id")
		}
		return domain.Refuse("member-not-found", fmt.Sprintf("there is no member %q", clip(ref)),
			"the members are "+choices(all), "use one of these names or ids")
	})
	return found, err
}

func (r reader) named(query string, arg any) ([]named, error) {
	var all []named
	err := r.rows(func(rows *sql.Rows) error {
		var n named
		err := rows.Scan(&n.id, &n.name)
		all = append(all, n)
		return err
	}, query, arg)
	return all, err
}

// pick finds what ref means. An exact id wins over an exact name, that over a
// name in other letters, that over the beginning of an id or name. several is
// what it may mean when that is not one.
func pick(ref string, all []named) (id string, several []named) {
	ref = norm.NFC.String(strings.TrimSpace(ref))
	if ref == "" {
		return "", nil
	}
	lower := strings.ToLower(ref)
	var exact, folded, prefixed []named
	for _, n := range all {
		switch name := norm.NFC.String(n.name); {
		case n.id == ref:
			return n.id, nil
		case name == ref:
			exact = append(exact, n)
		case n.id == lower, strings.EqualFold(name, ref):
			folded = append(folded, n)
		case strings.HasPrefix(n.id, lower), strings.HasPrefix(strings.ToLower(name), lower):
			prefixed = append(prefixed, n)
		}
	}
	for _, found := range [][]named{exact, folded, prefixed} {
		switch len(found) {
		case 0:
		case 1:
			return found[0].id, nil
		default:
			return "", found
		}
	}
	return "", nil
}

func unknownConversation(ref string, all []named) *domain.Refusal {
	why := ""
	if near := nearby(ref, all); len(near) > 0 {
		why = "you may mean " + choices(near)
	}
	return domain.Refuse("conversation-not-found", fmt.Sprintf("there is no conversation %q", clip(ref)), why, "rollcall ls lists those there are")
}

// nearby is what ref may be a slip of.
func nearby(ref string, all []named) []named {
	words := make([]string, 0, 2*len(all))
	for _, n := range all {
		words = append(words, n.id, n.name)
	}
	ref = norm.NFC.String(strings.TrimSpace(ref))
	var found []named
	for _, word := range nearest.To(ref, words, 3) {
		for _, n := range all {
			if (n.id == word || n.name == word) && !slices.Contains(found, n) {
				found = append(found, n)
			}
		}
	}
	return found
}

// choices names some of many.
func choices(all []named) string {
	const most = 8
	words := make([]string, 0, most+1)
	for i, n := range all {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		words = append(words, n.String())
	}
	return strings.Join(words, ", ")
}

func (n named) String() string {
	if n.name == "" {
		return n.id
	}
	return fmt.Sprintf("%s (%s)", clip(n.name), n.id)
}

// clip keeps what a user typed short enough for one line.
func clip(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
