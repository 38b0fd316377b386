package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// kept is a stream as it should be and as it is.
type kept struct {
	want jetstream.StreamConfig
	info *jetstream.StreamInfo
	err  error
}

// keptTime bounds the look at the streams: one that nobody leads may not answer,
// and the other checks want their time.
const keptTime = 2 * time.Second

// kept reads every stream's own account of itself.
func (d *doctor) kept(ctx context.Context) []kept {
	ctx, cancel := context.WithTimeout(ctx, keptTime)
	defer cancel()
	js, err := jetstream.New(d.nc)
	all := []kept{}
	for _, want := range eventstore.Streams(eventstore.Config{}) {
		all = append(all, kept{want: want, err: err})
	}
	var asked sync.WaitGroup
	for i := range all {
		if err != nil {
			break
		}
		asked.Go(func() {
			s, err := js.Stream(ctx, all[i].want.Name)
			if all[i].err = err; err == nil {
				all[i].info = s.CachedInfo()
			}
		})
	}
	asked.Wait()
	return all
}

// storage says which promise holds for what is acknowledged.
func (d *doctor) storage(all []kept) api.Check {
	c := api.Check{Name: "storage"}
	copies := 0
	var behind, headless []string
	for _, k := range all {
		if k.err != nil {
			if !errors.Is(k.err, jetstream.ErrStreamNotFound) { // that one is told by the check of the streams
				headless = append(headless, k.want.Name)
			}
			continue
		}
		if n := k.info.Config.Replicas; copies == 0 || n < copies {
			copies = n
		}
		if lacks, leads := peers(k.info); !leads {
			headless = append(headless, k.want.Name)
		} else {
			for _, peer := range lacks {
				behind = append(behind, peer+" for "+k.want.Name)
			}
		}
	}
	if len(headless) > 0 {
		c.Level, c.Found = api.Fail, "no server leads "+strings.Join(headless, ", ")+": nothing can be stored there now"
		c.Fix = "start the NATS servers that are down: more than half of them must run, and reach each other"
		return c
	}
	c.Level, c.Found, c.Fix = d.promise(copies)
	if len(behind) > 0 {
		c.Level, c.Found = api.Warn, fmt.Sprintf("%s. Now copies are missing: %s", c.Found, byPeer(behind))
		c.Fix = "start the servers that are down; one that is up copies what it lacks by itself"
	}
	return c
}

// silent is how long a leader must not have heard of a server to call it down,
// whatever the cluster still says.
const silent = 3 * time.Second

// catchingUp marks a server that is up and has not got all yet.
const catchingUp = " (up, and copying what it lacks)"

// settled is [doctor.kept], looked at again for a moment while servers that are
// up have not got what was stored just now: that is how a busy cluster looks.
func (d *doctor) settled(ctx context.Context) []kept {
	all := d.kept(ctx)
	for range 4 {
		if !slices.ContainsFunc(all, kept.busy) {
			break
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return all
		}
		all = d.kept(ctx)
	}
	return all
}

func (k kept) busy() bool {
	if k.err != nil {
		return false
	}
	lacks, _ := peers(k.info)
	return slices.ContainsFunc(lacks, func(l string) bool { return strings.HasSuffix(l, catchingUp) })
}

// peers tells which servers of a stream's have no current copy, and whether one
// leads it.
func peers(info *jetstream.StreamInfo) (lacks []string, leads bool) {
	if info.Cluster == nil || info.Config.Replicas == 1 && info.Cluster.Leader == "" && len(info.Cluster.Replicas) == 0 {
		return nil, true // a server that stands alone
	}
	for _, p := range info.Cluster.Replicas {
		switch {
		case p.Offline, p.Active > silent:
			lacks = append(lacks, p.Name+" (down)")
		case !p.Current:
			lacks = append(lacks, p.Name+catchingUp)
		}
	}
	return lacks, info.Cluster.Leader != ""
}

// byPeer makes "n2 (down) for A", "n2 (down) for B" one.
func byPeer(texts []string) string {
	var order []string
	streams := map[string][]string{}
	for _, t := range texts {
		peer, stream, _ := strings.Cut(t, " for ")
		if streams[peer] == nil {
			order = append(order, peer)
		}
		streams[peer] = append(streams[peer], stream)
	}
	slices.Sort(order)
	for i, peer := range order {
		if n := len(streams[peer]); n > 2 {
			order[i] = fmt.Sprintf("%s for %d streams", peer, n)
		} else {
			order[i] = peer + " for " + strings.Join(streams[peer], " and ")
		}
	}
	return strings.Join(order, ", ")
}

// promise is what so many copies are worth, by who keeps them and how.
func (d *doctor) promise(copies int) (level, found, fix string) {
	always := d.settings.SyncAlways
	switch {
	case d.footing == onOthers && copies < 2:
		return api.Warn, "one copy, on a server that this node does not run: a crash of it loses nothing, and what a power cut takes depends on its sync_interval, which cannot be seen from here (two minutes where nothing is set)",
			"set sync_interval: always in that server's jetstream block, or keep three copies on a cluster: rollcall node init --replicas 3"
	case copies < 2 && always:
		return api.OK, "one copy, synced before every acknowledgement: nothing acknowledged is lost by a crash or a power cut", ""
	case copies < 2:
		return api.Warn, "one copy, synced at intervals: a crash of the process loses nothing, a power cut may lose the last seconds", "start the node with sync: always"
	case copies == 2:
		return api.Warn, "two copies: the loss of one server loses nothing, but nothing can be stored until it is back", "keep three copies: rollcall node init --replicas 3"
	case d.footing == onOthers:
		return api.OK, fmt.Sprintf("%d copies, on servers that this node does not run: the loss of one of them loses nothing; what a power cut of all takes depends on their sync_interval", copies), ""
	case always:
		return api.OK, fmt.Sprintf("%d copies, on this server synced before every acknowledgement: the loss of one server loses nothing, nor does a power cut of all that sync so", copies), ""
	}
	return api.OK, fmt.Sprintf("%d copies, on this server synced at intervals: the loss of one server, also by a power cut, loses nothing; a power cut of all at once may lose the last seconds", copies), ""
}

// inboxNear is how full the inbox is when doctor warns, of a hundred.
const inboxNear = 80

// inbox tells whether there is room for what comes in.
func (d *doctor) inbox(all []kept) api.Check {
	c := api.Check{Name: "inbox", Level: api.OK}
	for _, k := range all {
		if k.want.Name != eventstore.StreamInbox || k.err != nil {
			continue
		}
		used, limit := k.info.State.Bytes, uint64(max(k.info.Config.MaxBytes, 1))
		c.Found = fmt.Sprintf("%d messages not yet done, %s of %s", k.info.State.Msgs, mebibytes(used), mebibytes(limit))
		if used*100 >= limit*inboxNear {
			c.Level, c.Found = api.Warn, c.Found+": when it is full, what is sent is refused (inbox-full)"
			c.Fix = "see whether every partition has a node (rollcall node ls) and which conversations are held (rollcall ls); start more nodes, or have publishers wait"
		}
		return c
	}
	return api.Check{Name: c.Name, Level: api.Fail, Found: "it does not answer", Fix: "see the check of the storage"}
}

func mebibytes(n uint64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// manyConsumers is so near the limit of a stream, by default 1,000, that doctor
// warns.
const manyConsumers = 800

// connection tells of the servers of others: whether they answer, and what they
// allow.
func (d *doctor) connection(ctx context.Context, all []kept) api.Check {
	c := api.Check{Name: "nats", Level: api.OK}
	took, err := d.nc.RTT()
	if err != nil {
		return api.Check{Name: c.Name, Level: api.Fail, Found: "the connection does not answer: " + err.Error(), Fix: "look at the NATS servers, and at the node's log"}
	}
	c.Found = fmt.Sprintf("%s at %s answers in %v", d.nc.ConnectedServerName(), d.nc.ConnectedAddr(), took.Round(took/100+1))
	if n := d.nc.Stats().Reconnects; n > 0 {
		c.Found += fmt.Sprintf("; the connection broke %d times and was made again", n)
	}
	var near []string
	for _, k := range all {
		if k.err == nil && k.info.State.Consumers >= manyConsumers {
			near = append(near, fmt.Sprintf("%s has %d consumers, the usual limit is 1000", k.want.Name, k.info.State.Consumers))
		}
	}
	if js, err := jetstream.New(d.nc); err == nil {
		if account, err := js.AccountInfo(ctx); err == nil {
			near = append(near, nearLimits(account.Tier)...)
		}
	}
	if len(near) > 0 {
		c.Level, c.Found = api.Warn, c.Found+"; near a limit: "+strings.Join(near, "; ")
		c.Fix = "raise the limits of the account, or remove what nobody uses: nats consumer ls STREAM"
	}
	return c
}

func nearLimits(t jetstream.Tier) (near []string) {
	if limit := t.Limits.MaxStore; limit > 0 && t.Store*100 >= uint64(limit)*inboxNear {
		near = append(near, fmt.Sprintf("the account stores %s of %s", mebibytes(t.Store), mebibytes(uint64(limit))))
	}
	if limit := t.Limits.MaxConsumers; limit > 0 && t.Consumers*100 >= limit*inboxNear {
		near = append(near, fmt.Sprintf("the account has %d of %d consumers", t.Consumers, limit))
	}
	return near
}
