package eventstore

import (
	"cmp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

// provision is the version of the streams' settings. Raise it with any change
// to Streams; an older program then leaves them as they are, and refuses to
// work with them if it is older than provisionNeeds.
const (
	provision = 2
	// provisionNeeds is the oldest version of the settings that a program may
	// know and work with these: raise it to provision when an older program
	// would break a promise on them, and only then, for old nodes run beside
	// new ones while a cluster is upgraded.
	provisionNeeds = 2
)

// Metadata of our streams.
const (
	metaProvision  = "rollcall.provision"
	metaNeeds      = "rollcall.needs"
	metaPartitions = "rollcall.partitions"
)

// headroom is what headers may add to a message of the inbox.
const headroom = 16 << 10

// Limits that an operator feels.
const (
	// InboxBytes is the inbox's default size limit.
	InboxBytes = 1 << 30
	// deadBytes bounds the dead letters; the oldest go first.
	deadBytes = 256 << 20
	// dueTTL is how long a due message is kept beside the inbox, which copies
	// it at once unless it is full.
	dueTTL = 24 * time.Hour
)

// Streams are the settings of every stream of an installation.
func Streams(cfg Config) []jetstream.StreamConfig {
	all := []jetstream.StreamConfig{
		{
			Name:        StreamEvents,
			Description: "Rollcall's log: one subject a conversation, one message a commit",
			Subjects:    []string{prefixEvents + "*.*.*"},
			AllowDirect: true, DenyDelete: true, DenyPurge: true,
			// The expected sequence decides; the window only tells R3 repeats apart.
			Duplicates: 30 * time.Second,
		},
		{
			Name:              StreamTimers,
			Description:       "Rollcall's timers: scheduled messages, and those that are due",
			Subjects:          []string{prefixTimer + "*.*.*", duePattern},
			AllowMsgSchedules: true, AllowMsgTTL: true, AllowRollup: true, DenyDelete: true,
		},
		{
			Name:        StreamInbox,
			Description: "What enters Rollcall and is not yet done",
			Subjects:    []string{inPattern},
			SubjectTransform: &jetstream.SubjectTransformConfig{
				Source: inPattern, Destination: inToPartition,
			},
			Sources: []*jetstream.StreamSource{{
				Name: StreamTimers,
				SubjectTransforms: []jetstream.SubjectTransformConfig{{
					Source: duePattern, Destination: dueToPartition,
				}},
			}},
			Retention: jetstream.WorkQueuePolicy,
			Discard:   jetstream.DiscardNew, MaxBytes: cmp.Or(cfg.InboxBytes, InboxBytes),
			MaxMsgSize: MaxInbox + headroom,
			DenyDelete: true, DenyPurge: true,
			Duplicates: InboxDuplicates,
		},
		{
			Name:        StreamDead,
			Description: "Messages that could never succeed, with the reason",
			Subjects:    []string{prefixDead + "*.*.*"},
			Discard:     jetstream.DiscardOld, MaxBytes: deadBytes,
			AllowDirect: true,
		},
		{
			Name:              streamNodes,
			Description:       "Which node owns which partition",
			Subjects:          []string{"$KV." + BucketNodes + ".>"},
			MaxMsgsPerSubject: 1,
			Discard:           jetstream.DiscardNew,
			AllowMsgTTL:       true, AllowRollup: true, AllowDirect: true, DenyDelete: true,
		},
		objectStore(BucketBlobs, "Large bodies and files, by content hash"),
		objectStore(BucketSnapshots, "Cached states; they can all be deleted"),
	}
	for i := range all {
		s := &all[i]
		s.Storage = jetstream.FileStorage
		s.Replicas = max(cfg.Replicas, 1)
		s.MaxMsgs, s.MaxConsumers = -1, -1
		s.MaxBytes = cmp.Or(s.MaxBytes, -1)
		s.MaxMsgsPerSubject = cmp.Or(s.MaxMsgsPerSubject, -1)
		s.MaxMsgSize = cmp.Or(s.MaxMsgSize, -1)
		s.Duplicates = cmp.Or(s.Duplicates, 2*time.Minute)
		s.Compression = compression(*s)
		s.Metadata = map[string]string{
			metaProvision:  strconv.Itoa(provision),
			metaNeeds:      strconv.Itoa(provisionNeeds),
			metaPartitions: strconv.Itoa(domain.Partitions),
		}
	}
	return all
}

// compression of a stream. Not the inbox: it is nearly always empty, and the
// server packs a block anew, as a file of its own, whenever the last message of
// one goes. And nothing that has copies: a server that comes back may pack a
// block while it writes to it, and ends when it reads there (ADR 16).
func compression(s jetstream.StreamConfig) jetstream.StoreCompression {
	if s.Replicas == 1 && (s.Name == StreamEvents || s.Name == StreamDead) {
		return jetstream.S2Compression
	}
	return jetstream.NoCompression
}

func objectStore(bucket, description string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        objectPrefix + bucket,
		Description: description,
		Subjects:    []string{"$O." + bucket + ".C.>", "$O." + bucket + ".M.>"},
		Discard:     jetstream.DiscardNew,
		AllowRollup: true, AllowDirect: true,
	}
}

// consumer is the durable consumer that the holder of a lease receives with.
// Whoever holds partition 0 also takes what was stored as it came, for no
// partition is computed of a subject with a literal * or >: nobody else would
// ever take it out of the inbox.
func consumer(l Lease) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Durable:       consumerName(l),
		FilterSubject: commandsOf(l.Partition),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       AckWait,
		// What is unacknowledged is in the stream, and every claim makes a new
		// consumer. A file of its state, written again with every delivery and
		// acknowledgement, would be read by nobody.
		MemoryStorage: true,
		// At the defaults the next message, perhaps the approval that everybody
		// waits for, would never come.
		MaxAckPending: -1,
		MaxDeliver:    -1,
	}
	if l.Partition == 0 {
		c.FilterSubject, c.FilterSubjects = "", []string{commandsOf(0), inPattern}
	}
	return c
}
