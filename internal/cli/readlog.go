package cli

import (
	"context"
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// readLog reads a conversation's log from the first commit to the version that
// r names, or to its end. It checks hashes and order, and fails where they do
// not hold.
func readLog(ctx context.Context, c *api.Client, r ref, fn func(commit *rollcallv1.Commit, raw []byte)) (domain.Key, error) {
	version, hash := uint64(0), []byte(nil)
	key, err := c.Log(ctx, r.conversation, 1, func(raw []byte) error {
		if r.version > 0 && version == r.version {
			return api.ErrStop
		}
		commit, err := domain.Unseal(raw)
		if err == nil {
			err = domain.CheckNext(version, hash, commit)
		}
		if err != nil {
			return api.BrokenLog(r.conversation, version+1, err)
		}
		version, hash = commit.GetVersion(), commit.GetHash()
		fn(commit, raw)
		return nil
	})
	if err != nil {
		return key, err
	}
	if version < r.version {
		return key, domain.Refuse("version-not-found", fmt.Sprintf("the conversation has no version %d", r.version),
			fmt.Sprintf("its log ends at %d", version), "leave the version out to read it as it stands")
	}
	return key, nil
}
