package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// readLog reads a conversation's log from the first commit to the given version
// or, with 0, to its end. It checks hashes and order, and fails where they do
// not hold.
func readLog(ctx context.Context, from audit.Source, key domain.Key, until uint64, fn func(*rollcallv1.Commit)) error {
	version, hash := uint64(0), []byte(nil)
	err := from.Read(ctx, key, func(e audit.Entry) error {
		if until > 0 && version == until {
			return api.ErrStop
		}
		commit, err := domain.Unseal(e.Sealed)
		if err == nil {
			err = domain.CheckNext(version, hash, commit)
		}
		if err != nil {
			return api.BrokenLog(key.Conversation, version+1, err)
		}
		version, hash = commit.GetVersion(), commit.GetHash()
		fn(commit)
		return nil
	})
	if err != nil && !errors.Is(err, api.ErrStop) {
		return err
	}
	if version < until {
		return domain.Refuse("version-not-found", fmt.Sprintf("the conversation has no version %d", until),
			fmt.Sprintf("its log ends at %d", version), "leave the version out to read it as it stands")
	}
	return nil
}

// memberName finds the display name of the member that ref means.
func memberName(ctx context.Context, from audit.Source, key domain.Key, ref string) (string, error) {
	if n, ok := from.(*nodeSource); ok {
		d, err := n.client.Show(ctx, api.ReadRequest{Conversation: key.Conversation, Member: ref})
		if err != nil {
			return "", err
		}
		return d.Members[0].Name, nil
	}
	names := api.Names{}
	if err := readLog(ctx, from, key, 0, names.Add); err != nil {
		return "", err
	}
	return names.Pick(ref)
}

// bodyOf is a body's text, from wherever it lies.
func bodyOf(ctx context.Context, from audit.Source, key domain.Key, b *rollcallv1.Body) (string, error) {
	if b.GetBlob() == nil {
		return b.GetText(), nil
	}
	data, err := from.Body(ctx, key, b.GetBlob())
	return strings.ToValidUTF8(string(data), "\uFFFD"), err
}
