package eventstore

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Provision creates the streams and buckets, or brings older ones up to date.
// It may run any number of times, also on several machines at once. It refuses,
// with a *domain.Refusal, an installation made by a newer program or with
// another number of partitions, and says why a server does not let it. Replicas
// are only ever raised. See Plan for what it would do.
func Provision(ctx context.Context, nc *nats.Conn, cfg Config) error {
	return asking(ctx, nc, func(ctx context.Context, js jetstream.JetStream) error {
		f, err := look(ctx, nc, js, cfg)
		if err != nil {
			return err
		}
		for _, want := range f.wanted {
			if err := provisionStream(ctx, js, want); err != nil {
				return fmt.Errorf("provision stream %s: %w", want.Name, err)
			}
		}
		if f, err = look(ctx, nc, js, cfg); err != nil {
			return err
		}
		return f.raiseEpochs(ctx, js, cfg)
	})
}

func provisionStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	s, err := stream(ctx, js, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if want.Name == streamNodes {
			// Epochs must go on rising when the bucket was lost and the log was not.
			if want.FirstSeq, err = highestEpoch(ctx, js); err != nil {
				return err
			}
			want.FirstSeq++
		}
		err = within(ctx, makeTimeout, func(ctx context.Context) error { _, err := js.CreateStream(ctx, want); return err })
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		// Another one was faster.
		s, err = stream(ctx, js, want.Name)
	}
	if err != nil {
		return err
	}
	have := s.CachedInfo().Config
	if err := usable(want, have); err != nil {
		return err
	}
	if versionOf(have) > provision || len(differences(want, have, func(setting) bool { return true })) == 0 {
		return nil
	}
	want.Replicas = max(want.Replicas, have.Replicas)
	want.Compression = compression(want)
	want.FirstSeq, want.Placement = have.FirstSeq, have.Placement
	// What others noted stays.
	metadata := maps.Clone(have.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	maps.Copy(metadata, want.Metadata)
	want.Metadata = metadata
	return within(ctx, makeTimeout, func(ctx context.Context) error { _, err := js.UpdateStream(ctx, want); return err })
}
