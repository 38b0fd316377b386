package eventstore

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
)

// Subjects are built and parsed here and nowhere else; docs/subjects.md lists
// them. Names of people and things never stand in a subject.
const (
	prefixEvents = "rollcall.events."
	prefixIn     = "rollcall.in."
	prefixCmd    = "rollcall.cmd."
	prefixTimer  = "rollcall.timer."
	prefixDue    = "rollcall.due."
	prefixDead   = "rollcall.dead."
)

// ToCommand is the recipient of commands that are no messages.
const ToCommand = "_"

// EventSubject is a conversation's log: rollcall.events.<p>.<tenant>.<conv>.
func EventSubject(k domain.Key) string {
	return prefixEvents + strconv.Itoa(k.Partition()) + "." + k.String()
}

// eventsOf is the log of a partition.
func eventsOf(partition int) string { return prefixEvents + strconv.Itoa(partition) + ".>" }

// InboxSubject is where messages to a member enter: rollcall.in.<tenant>.<conv>.<to>.
func InboxSubject(k domain.Key, to string) string { return prefixIn + k.String() + "." + to }

// The inbox stores what enters, and what is due, under the partition that the
// server computes from tenant and conversation.
var (
	inPattern  = prefixIn + "*.*.*"
	duePattern = prefixDue + "*.*.*"

	partitioned    = fmt.Sprintf("%s{{partition(%d,1,2)}}.{{wildcard(1)}}.{{wildcard(2)}}.", prefixCmd, domain.Partitions)
	inToPartition  = partitioned + "{{wildcard(3)}}"
	dueToPartition = partitioned + ToCommand
)

// commandsOf is what the inbox holds for a partition.
func commandsOf(partition int) string { return prefixCmd + strconv.Itoa(partition) + ".>" }

func timerSubject(k domain.Key, timer string) string { return prefixTimer + k.String() + "." + timer }
func dueSubject(k domain.Key, timer string) string   { return prefixDue + k.String() + "." + timer }

// deadSubject keeps the tokens of the message that died, whatever they are.
func deadSubject(e Envelope) string { return prefixDead + e.Key.String() + "." + e.To }

// ParseEventSubject is the inverse of EventSubject. A key that is not valid,
// or a partition that is not the key's, is an error.
func ParseEventSubject(subject string) (domain.Key, error) {
	t, ok := tokens(subject, prefixEvents)
	k := domain.Key{Tenant: t[1], Conversation: t[2]}
	if !ok || !k.Valid() || t[0] != strconv.Itoa(k.Partition()) {
		return domain.Key{}, fmt.Errorf("subject %q is no conversation's log", subject)
	}
	return k, nil
}

// parseCommand takes rollcall.cmd.<p>.<tenant>.<conv>.<to> apart. What an
// outsider published comes in here, so the key may not be valid; then it says so.
func parseCommand(subject string) (Envelope, error) {
	if rest, raw := strings.CutPrefix(subject, prefixIn); raw {
		e, _ := parseAddress(subject, rest)
		return e, fmt.Errorf("subject %q names no conversation: it has a wildcard", subject)
	}
	rest, ok := strings.CutPrefix(subject, prefixCmd)
	_, rest, more := strings.Cut(rest, ".")
	if !ok || !more {
		return Envelope{}, fmt.Errorf("subject %q is no command", subject)
	}
	return parseAddress(subject, rest)
}

func parseDead(subject string) (Envelope, error) {
	rest, ok := strings.CutPrefix(subject, prefixDead)
	if !ok {
		return Envelope{}, fmt.Errorf("subject %q is no dead letter", subject)
	}
	return parseAddress(subject, rest)
}

func parseAddress(subject, rest string) (Envelope, error) {
	t, ok := tokens(rest, "")
	e := Envelope{Key: domain.Key{Tenant: t[0], Conversation: t[1]}, To: t[2]}
	if !ok || !e.Key.Valid() {
		return e, fmt.Errorf("subject %q names no conversation: tenant and conversation are lower-case letters, digits, '-' and '_'", subject)
	}
	return e, nil
}

// tokens cuts the prefix and splits the rest into exactly three tokens.
func tokens(subject, prefix string) (t [3]string, ok bool) {
	rest, ok := strings.CutPrefix(subject, prefix)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 {
		return t, false
	}
	return [3]string(parts), true
}

// consumerName is the durable consumer of a partition under an epoch.
func consumerName(l Lease) string { return fmt.Sprintf("p%d-%d", l.Partition, l.Epoch) }

// parseConsumer is the inverse of consumerName; ok is false for any other name.
func parseConsumer(name string) (partition int, epoch uint64, ok bool) {
	p, e, found := strings.Cut(strings.TrimPrefix(name, "p"), "-")
	partition, err1 := strconv.Atoi(p)
	epoch, err2 := strconv.ParseUint(e, 10, 64)
	ok = found && err1 == nil && err2 == nil && consumerName(Lease{Partition: partition, Epoch: epoch}) == name
	return partition, epoch, ok
}

// Names of streams and buckets.
const (
	StreamEvents = "ROLLCALL_EVENTS"
	StreamInbox  = "ROLLCALL_INBOX"
	StreamTimers = "ROLLCALL_TIMERS"
	StreamDead   = "ROLLCALL_DEAD"

	BucketNodes     = "ROLLCALL_NODES"
	BucketBlobs     = "ROLLCALL_BLOBS"
	BucketSnapshots = "ROLLCALL_SNAPSHOTS"

	// A bucket is a stream under a prefix: key-value and object store.
	streamNodes  = "KV_" + BucketNodes
	objectPrefix = "OBJ_"
)

// ownerSubject is the key owner.<p> of the bucket of nodes.
func ownerSubject(partition int) string { return nodesSubject(keyOwner + strconv.Itoa(partition)) }

// Subjects of an object store, as its clients lay them out.
func chunkSubject(bucket, id string) string { return "$O." + bucket + ".C." + id }

func metaSubject(bucket, name string) string {
	return "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}
