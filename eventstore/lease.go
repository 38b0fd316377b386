package eventstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// claimed is the value of the key owner.<p>. The revision of the claim is the
// epoch; a renewal has a later revision and names the epoch it renews.
type claimed struct {
	Node  string `json:"node"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Claim tells our own claim, its acknowledgement lost, from another's.
	Claim string `json:"claim,omitempty"`
}

// holder reads who owns a partition from the leader; revision is that of the
// key, or 0 when nobody holds it and nothing is left of it.
func (j *JetStream) holder(ctx context.Context, partition int) (c claimed, revision uint64, err error) {
	var m stored
	var ok bool
	err = persist(ctx, func() (err error) {
		m, ok, err = j.leaderGet(ctx, streamNodes, getRequest{LastFor: ownerSubject(partition)})
		return err
	})
	if err != nil || !ok {
		return c, 0, err
	}
	if m.header.Get("KV-Operation") != "" {
		return c, m.seq, nil // released
	}
	if err := json.Unmarshal(m.data, &c); err != nil {
		return c, 0, fmt.Errorf("owner of partition %d: %w", partition, err)
	}
	if c.Epoch == 0 {
		c.Epoch = m.seq
	}
	return c, m.seq, nil
}

// set writes the key if its revision is still the expected one.
func (j *JetStream) set(ctx context.Context, partition int, c claimed, expect uint64) (revision uint64, err error) {
	data, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	ack, err := j.publish(ctx, ownerMsg(partition, expect, data, j.leaseTTL))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// ownerMsg is a raw publish: the client library's update drops the TTL.
func ownerMsg(partition int, expect uint64, data []byte, ttl time.Duration) *nats.Msg {
	m := &nats.Msg{Subject: ownerSubject(partition), Header: nats.Header{}, Data: data}
	m.Header.Set("Nats-TTL", ttl.String())
	m.Header.Set(headerExpect, strconv.FormatUint(expect, 10))
	return m
}

func changed(err error) bool { return hasCode(err, codeWrongLastSeq, codeWrongLastSeqR3) }

// Claim implements Leases.
func (j *JetStream) Claim(ctx context.Context, node string, partition int) (Lease, error) {
	want := claimed{Node: node, Claim: rand.Text()}
	for wait := newBackoff(); ; {
		have, revision, err := j.holder(ctx, partition)
		switch {
		case err != nil:
		case have.Claim == want.Claim:
			return j.hold(Lease{Partition: partition, Node: node, Epoch: have.Epoch, TTL: j.leaseTTL}, revision), nil
		case have.Node != "" && have.Node != node:
			return Lease{}, fmt.Errorf("claim partition %d: held by %s at epoch %d: %w", partition, have.Node, have.Epoch, ErrHeld)
		default:
			revision, err = j.set(ctx, partition, want, revision)
			if err == nil {
				return j.hold(Lease{Partition: partition, Node: node, Epoch: revision, TTL: j.leaseTTL}, revision), nil
			}
		}
		if !passing(err) && !changed(err) || wait.sleep(ctx) != nil {
			return Lease{}, fmt.Errorf("claim partition %d: %w", partition, err)
		}
	}
}

// Renew implements Leases.
func (j *JetStream) Renew(ctx context.Context, l Lease) error {
	revision, ok := j.revision(l)
	for wait := newBackoff(); ; {
		var err error
		if ok {
			revision, err = j.set(ctx, l.Partition, claimed{Node: l.Node, Epoch: l.Epoch}, revision)
			if err == nil {
				j.hold(l, revision)
				return nil
			}
		}
		// Somebody else's claim, or an earlier renewal that was not heard of.
		if !ok || changed(err) {
			var have claimed
			have, revision, err = j.holder(ctx, l.Partition)
			if err == nil && (have.Epoch != l.Epoch || have.Node != l.Node) {
				j.forget(l)
				return fmt.Errorf("renew partition %d at epoch %d: %w", l.Partition, l.Epoch, ErrPartitionLost)
			}
			if ok = err == nil; ok {
				continue
			}
		}
		if !passing(err) || wait.sleep(ctx) != nil {
			return fmt.Errorf("renew partition %d at epoch %d: %w", l.Partition, l.Epoch, err)
		}
	}
}

// Release implements Leases. A lease that is not held any more is no error.
func (j *JetStream) Release(ctx context.Context, l Lease) error {
	j.forget(l)
	for wait := newBackoff(); ; {
		have, revision, err := j.holder(ctx, l.Partition)
		if err == nil {
			if have.Epoch != l.Epoch || have.Node != l.Node {
				return nil
			}
			m := ownerMsg(l.Partition, revision, nil, l.TTL)
			m.Header.Set("KV-Operation", "DEL")
			if _, err = j.publish(ctx, m); err == nil {
				return nil
			}
		}
		if !passing(err) && !changed(err) || wait.sleep(ctx) != nil {
			return fmt.Errorf("release partition %d at epoch %d: %w", l.Partition, l.Epoch, err)
		}
	}
}

func (j *JetStream) hold(l Lease, revision uint64) Lease {
	j.mu.Lock()
	defer j.mu.Unlock()
	for old := range j.renewed {
		if old.Partition == l.Partition && old.Node == l.Node && old.Epoch < l.Epoch {
			delete(j.renewed, old)
		}
	}
	j.renewed[l] = revision
	return l
}

func (j *JetStream) revision(l Lease) (uint64, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	revision, ok := j.renewed[l]
	return revision, ok
}

func (j *JetStream) forget(l Lease) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.renewed, l)
}
