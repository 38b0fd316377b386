package eventstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

// Change is one thing that provisioning makes or sets.
type Change struct {
	// Stream by its name on the server: a bucket's begins with KV_ or OBJ_.
	Stream string
	// Setting that changes; empty when the stream is made.
	Setting  string
	From, To string
}

// String tells the change in a line.
func (c Change) String() string {
	if c.Setting == "" {
		return c.Stream + ": make it, " + c.To
	}
	return fmt.Sprintf("%s: %s from %s to %s", c.Stream, c.Setting, word(c.From), word(c.To))
}

// Plan lists what Provision would make or change, and changes nothing. An empty
// list means that all is as it must be. It refuses what Provision refuses, but
// for what only the server can tell when a stream is made, such as an
// account's limits.
func Plan(ctx context.Context, nc *nats.Conn, cfg Config) ([]Change, error) {
	var all []Change
	err := asking(ctx, nc, func(ctx context.Context, js jetstream.JetStream) error {
		found, err := look(ctx, nc, js, cfg)
		if err == nil {
			all, err = found.changes(ctx, js, cfg)
		}
		return err
	})
	return all, err
}

// Ready refuses an installation on which a node cannot work as it is, and
// changes nothing.
func Ready(ctx context.Context, nc *nats.Conn, cfg Config) error {
	all, err := Plan(ctx, nc, cfg)
	if err != nil || len(all) == 0 {
		return err
	}
	const what, try = "cannot use the streams of this NATS server", "rollcall node init --dry-run says what is to be done, rollcall node init does it"
	made := slices.DeleteFunc(slices.Clone(all), func(c Change) bool { return c.Setting != "" })
	if len(made) > 0 {
		return domain.Refuse("installation-missing", what, "stream "+made[0].Stream+" does not exist", try)
	}
	var texts []string
	for _, c := range all {
		texts = append(texts, c.String())
	}
	return domain.Refuse("installation-outdated", what, "they are not set as this program needs them: "+strings.Join(texts, "; "), try)
}

// found are the streams that are there, of those that are wanted.
type found struct {
	wanted []jetstream.StreamConfig
	have   map[string]*jetstream.StreamInfo
}

// look reads the streams and refuses those that cannot be used, or made.
func look(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, cfg Config) (found, error) {
	f := found{wanted: Streams(cfg), have: map[string]*jetstream.StreamInfo{}}
	for _, want := range f.wanted {
		s, err := stream(ctx, js, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return f, fmt.Errorf("look for stream %s: %w", want.Name, err)
		}
		f.have[want.Name] = s.CachedInfo()
		if err := usable(want, s.CachedInfo().Config); err != nil {
			return f, err
		}
	}
	if err := f.complete(cfg.OnDisk); err != nil {
		return f, err
	}
	if err := f.free(ctx, js); err != nil {
		return f, err
	}
	return f, f.servers(nc)
}

// vital are the streams that hold what was acknowledged and stands nowhere
// else. The others are made again when they are gone: claims, timers and
// snapshots come back from the log, dead letters are a courtesy, and a missing
// body is noticed where it is read.
var vital = []string{StreamEvents, StreamInbox}

// complete refuses an installation that lost a stream which must not be made
// again as if it had never been. Streams are made in the order of Streams, so
// one was there when a later one is; and commits come out of an inbox.
func (f found) complete(onDisk []string) error {
	missing, was, commits := "", false, false
	for _, want := range f.wanted {
		switch info := f.have[want.Name]; {
		case info != nil:
			was = was || missing != ""
			commits = commits || want.Name == StreamEvents && info.State.LastSeq > 0
		case missing == "" && slices.Contains(vital, want.Name) && !slices.Contains(onDisk, want.Name):
			missing = want.Name
		}
	}
	if missing == "" || !was && !commits {
		return nil
	}
	return domain.Refuse("installation-incomplete", "cannot use the streams of this NATS server",
		"stream "+missing+" is gone or cannot be opened, and others of the installation are there: a new one would hide what was lost",
		"restore the data directory from a backup; the lines of nats-server in the node's log say more")
}

// answered are subjects that nodes answer. A stream that listens there answers
// first: its acknowledgement would be taken for the node's word.
var answered = []string{"rollcall.api.>", "rollcall.admin.>", "rollcall.node.>"}

// free refuses when another stream listens on a subject of ours.
func (f found) free(ctx context.Context, js jetstream.JetStream) error {
	subjects := slices.Clone(answered)
	ours := map[string]bool{}
	for _, want := range f.wanted {
		ours[want.Name] = true
		if f.have[want.Name] == nil {
			subjects = append(subjects, want.Subjects...)
		}
	}
	for _, subject := range subjects {
		names := js.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
		var foreign string
		for name := range names.Name() {
			if !ours[name] {
				foreign = name
			}
		}
		if err := names.Err(); err != nil {
			return fmt.Errorf("look for streams on %s: %w", subject, err)
		}
		if foreign != "" {
			return foreignStream("stream "+foreign+" listens on "+subject, "give that stream other subjects, or Rollcall an account of its own")
		}
	}
	return nil
}

func foreignStream(why, try string) error {
	return domain.Refuse("stream-foreign", "cannot use this NATS account", why, try)
}

// servers refuses more replicas than there can be. How many servers a cluster
// has, only the attempt tells.
func (f found) servers(nc *nats.Conn) error {
	if nc.ConnectedClusterName() != "" {
		return nil
	}
	for _, want := range f.wanted {
		if info := f.have[want.Name]; want.Replicas > 1 && (info == nil || info.Config.Replicas < want.Replicas) {
			return tooManyReplicas(fmt.Sprintf("%d were asked for, and this NATS server stands alone", want.Replicas))
		}
	}
	return nil
}

func tooManyReplicas(why string) error {
	return domain.Refuse("replicas-too-many", "cannot keep so many copies of each stream", why,
		"start more servers, or ask for fewer --replicas")
}

// usable refuses a stream that was made by a newer program, for another number
// of partitions, or by somebody else.
func usable(want, have jetstream.StreamConfig) error {
	version, err := checkStream(have)
	if err != nil || version > provision {
		return err
	}
	for _, c := range differences(want, have, func(s setting) bool { return s.fixed }) {
		if c.Setting != "replicas" {
			return foreignStream(fmt.Sprintf("stream %s was not made by Rollcall: its %s is %s, must be %s, and that cannot be changed", c.Stream, c.Setting, word(c.From), word(c.To)),
				"rename or remove that stream if nobody needs it, or give Rollcall an account of its own")
		}
	}
	return nil
}

// checkStream returns the version with which a stream was provisioned. It may
// be newer than ours, if that one says that we can work with it.
func checkStream(have jetstream.StreamConfig) (int, error) {
	version := versionOf(have)
	needs, err := strconv.Atoi(have.Metadata[metaNeeds])
	if err != nil {
		needs = version
	}
	if needs > provision {
		return 0, domain.Refuse("installation-newer", "cannot use the streams of this NATS server",
			fmt.Sprintf("stream %s was set up by a newer Rollcall (settings %d, this program knows %d)", have.Name, needs, provision),
			"use the newer version here too")
	}
	if p := have.Metadata[metaPartitions]; version > 0 && p != strconv.Itoa(domain.Partitions) {
		return 0, domain.Refuse("installation-partitions", "cannot use the streams of this NATS server",
			fmt.Sprintf("stream %s was set up for %s partitions, this program works with %d", have.Name, p, domain.Partitions),
			"use the Rollcall that made this installation")
	}
	return version, nil
}

func versionOf(c jetstream.StreamConfig) int {
	version, _ := strconv.Atoi(c.Metadata[metaProvision])
	return version
}

// changes compares. What a newer program set up is left as it is.
func (f found) changes(ctx context.Context, js jetstream.JetStream, cfg Config) ([]Change, error) {
	var all []Change
	for _, want := range f.wanted {
		info := f.have[want.Name]
		switch {
		case info == nil:
			all = append(all, Change{Stream: want.Name, To: copies(want.Replicas)})
		case versionOf(info.Config) <= provision:
			all = append(all, differences(want, info.Config, func(setting) bool { return true })...)
		}
	}
	from, to, err := f.epochs(ctx, js, cfg)
	if err == nil && to > from {
		all = append(all, Change{Stream: streamNodes, Setting: "next epoch", From: strconv.FormatUint(from, 10), To: strconv.FormatUint(to, 10)})
	}
	return all, err
}

func copies(n int) string {
	if n == 1 {
		return "one copy"
	}
	return fmt.Sprintf("%d copies", n)
}
