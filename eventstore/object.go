package eventstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// bucket is an object store, laid out as NATS's own clients lay it out, so
// that their tools can read it. Those clients read through a consumer and wait
// for chunks that are gone, and they send a chunk again from a buffer that has
// moved on; so this one reads by direct get and repeats what it sent.
type bucket struct {
	j    *JetStream
	name string
}

// chunkBytes is how much of an object one message holds.
const chunkBytes = 256 << 10

// An object that has an entry, and bytes that are gone or are others.
var (
	errGone    = errors.New("bytes of the object are gone")
	errDamaged = errors.New("the object is damaged")
)

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "SHA-256=" + base64.URLEncoding.EncodeToString(sum[:])
}

// put stores an object under a name. What stood there is replaced.
func (b bucket) put(ctx context.Context, name string, data []byte, metadata map[string]string) error {
	old, replaces, err := b.leaderInfo(ctx, name)
	if err != nil {
		return err
	}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name: name, Metadata: metadata,
			Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkBytes},
		},
		Bucket: b.name, NUID: rand.Text(), ModTime: time.Now().UTC(),
		Size: uint64(len(data)), Digest: digest(data),
	}
	for rest := data; len(rest) > 0; info.Chunks++ {
		n := min(len(rest), chunkBytes)
		chunk := &nats.Msg{Subject: chunkSubject(b.name, info.NUID), Header: nats.Header{}, Data: rest[:n]}
		chunk.Header.Set(HeaderMsgID, info.NUID+"-"+strconv.Itoa(int(info.Chunks)))
		if err := b.publish(ctx, chunk); err != nil {
			return err
		}
		rest = rest[n:]
	}
	body, err := json.Marshal(info)
	if err != nil {
		return err
	}
	meta := &nats.Msg{Subject: metaSubject(b.name, name), Header: nats.Header{}, Data: body}
	meta.Header.Set("Nats-Rollup", "sub")
	if err := b.publish(ctx, meta); err != nil {
		return err
	}
	if replaces {
		if err := b.purge(ctx, old.NUID); err != nil {
			b.j.log.Warn("chunks of a replaced object stay behind", "bucket", b.name, "object", name, "error", err)
		}
	}
	return nil
}

func (b bucket) publish(ctx context.Context, m *nats.Msg) error {
	return persist(ctx, func() error {
		_, err := b.j.publish(ctx, m)
		return err
	})
}

func (b bucket) purge(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	return b.j.purge(ctx, objectPrefix+b.name, chunkSubject(b.name, id))
}

// get reads an object. It reports false when there is none, and errGone or
// errDamaged when it is not whole.
func (b bucket) get(ctx context.Context, name string) ([]byte, jetstream.ObjectInfo, bool, error) {
	info, ok, err := b.info(ctx, name)
	if err != nil || !ok {
		return nil, info, false, err
	}
	data := make([]byte, 0, min(info.Size, 64<<20))
	next := uint64(1)
	take := func(m stored) error {
		next = m.seq + 1
		data = append(data, m.data...)
		return nil
	}
	stream, subject := objectPrefix+b.name, chunkSubject(b.name, info.NUID)
	for uint64(len(data)) < info.Size {
		n, err := b.j.directGet(ctx, stream, getRequest{Seq: next, NextFor: subject, Batch: batchMessages}, take)
		if err != nil && !passing(err) {
			return nil, info, true, err
		}
		if n > 0 {
			continue
		}
		// A replica may lag; the leader has it or nobody has.
		var m stored
		var found bool
		err = persist(ctx, func() (err error) {
			m, found, err = b.j.leaderGet(ctx, stream, getRequest{Seq: next, NextFor: subject})
			return err
		})
		if err != nil {
			return nil, info, true, err
		}
		if !found {
			break
		}
		_ = take(m)
	}
	if uint64(len(data)) < info.Size {
		return nil, info, true, fmt.Errorf("%w: %d of %d are left", errGone, len(data), info.Size)
	}
	if digest(data) != info.Digest {
		return nil, info, true, errDamaged
	}
	return data, info, true, nil
}

// info finds an object by a direct get, or from the leader when the replica
// that answered does not know it.
func (b bucket) info(ctx context.Context, name string) (info jetstream.ObjectInfo, ok bool, err error) {
	var last *stored
	_, err = b.j.directGet(ctx, objectPrefix+b.name, getRequest{Seq: 1, NextFor: metaSubject(b.name, name), Batch: 2}, func(m stored) error {
		last = &m
		return nil
	})
	if err != nil && !passing(err) {
		return info, false, err
	}
	if last == nil && err == nil && !b.j.replicated {
		return info, false, nil // the only copy has none
	}
	if last == nil {
		return b.leaderInfo(ctx, name)
	}
	info, err = parseInfo(last.data)
	return info, err == nil && !info.Deleted, err
}

func (b bucket) leaderInfo(ctx context.Context, name string) (info jetstream.ObjectInfo, ok bool, err error) {
	var m stored
	err = persist(ctx, func() (err error) {
		m, ok, err = b.j.leaderGet(ctx, objectPrefix+b.name, getRequest{LastFor: metaSubject(b.name, name)})
		return err
	})
	if err != nil || !ok {
		return info, false, err
	}
	info, err = parseInfo(m.data)
	return info, err == nil && !info.Deleted, err
}

func parseInfo(data []byte) (info jetstream.ObjectInfo, err error) {
	if err := json.Unmarshal(data, &info); err != nil {
		return info, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return info, nil
}
