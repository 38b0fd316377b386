package actors_test

import (
	"context"
	"strconv"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// judge holds every log of the world against what the model was asked, by the
// checker's own reading. It ends every test.
func (w *world) judge() {
	var partitions []int
	for p := range domain.Partitions {
		partitions = append(partitions, p)
	}
	keys, err := w.disk.Conversations(context.Background(), partitions)
	if err != nil {
		w.t.Error(err)
	}
	var logs []checker.Log
	for _, key := range keys {
		var commits []*rollcallv1.Commit
		err := w.disk.Load(context.Background(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
			commits = append(commits, r.Commit)
			return nil
		})
		if err != nil {
			w.t.Error(err)
		}
		log, err := checker.FromCommits(key.Tenant, key.Conversation, commits)
		if err != nil {
			w.t.Error(err)
		}
		logs = append(logs, log)
	}
	var record []checker.Request
	for _, c := range w.brain.record() {
		record = append(record, checker.Request{
			Conversation: c.from.Key.Conversation, Member: c.from.Member, Run: c.from.Run, Step: strconv.FormatUint(uint64(c.from.Step), 10),
			Body: []byte(c.body),
		})
	}
	for _, f := range checker.CheckAll(logs, record) {
		w.t.Error(f)
	}
}
