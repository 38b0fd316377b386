package projections

import (
	"context"
	"database/sql"
	"maps"
	"math"
	"slices"

	"github.com/rollcall-dev/rollcall/domain"
)

// Runs lists the runs of a member (by id), or of all when member is empty, in
// the order they started. Errors: a *domain.Refusal for an unknown conversation.
func (db *DB) Runs(ctx context.Context, key domain.Key, member string) ([]Run, error) {
	var found []Run
	err := db.query(ctx, "runs", func(r reader) error {
		conv, err := r.row(key)
		if err != nil {
			return err
		}
		found, err = r.runs(conv, member)
		return err
	})
	return found, err
}

func (r reader) runs(conv int64, member string) ([]Run, error) {
	names, err := r.names(conv)
	if err != nil {
		return nil, err
	}
	used := map[string]Usage{}
	if err := r.eachReply(conv, func(c reply) { used[c.run] = used[c.run].plus(c.usage) }); err != nil {
		return nil, err
	}
	found := []Run{}
	err = r.rows(func(rows *sql.Rows) error {
		run, err := scanRun(rows)
		run.Member, run.Usage = names.of(run.MemberID), used[run.ID]
		found = append(found, run)
		return err
	}, `SELECT id, member, status, woken_by, agent_hash, started, started_version, finished, finished_version, reason, code, detail,
		undelivered, steps, calls_started, calls_failed, tool_calls, tool_errors, resumes
		FROM runs WHERE conv = ?1 AND (?2 = '' OR member = ?2) ORDER BY started_version, rowid`, conv, member)
	return found, err
}

func scanRun(rows *sql.Rows) (Run, error) {
	var r Run
	var consumed, undelivered string
	var started, from, finished, to int64
	if err := rows.Scan(&r.ID, &r.MemberID, &r.Status, &consumed, &r.AgentHash, &started, &from, &finished, &to,
		&r.Reason, &r.Code, &r.Detail, &undelivered, &r.Steps, &r.Calls, &r.FailedCalls, &r.Tools, &r.ToolErrors, &r.Resumed); err != nil {
		return r, err
	}
	r.Started, r.From, r.Finished, r.To = moment(started), count(from), moment(finished), count(to)
	if r.Reason == "" {
		r.Reason = "open"
	}
	var err error
	if r.Consumed, err = unlist(consumed); err != nil {
		return r, err
	}
	r.Undelivered, err = unlist(undelivered)
	return r, err
}

// Usage sums a conversation's model calls, in all, by member and by model.
// Errors: a *domain.Refusal for an unknown conversation.
func (db *DB) Usage(ctx context.Context, key domain.Key) (UsageReport, error) {
	report := UsageReport{Members: []MemberUsage{}, Models: []ModelUsage{}}
	err := db.query(ctx, "usage", func(r reader) error {
		conv, err := r.row(key)
		if err != nil {
			return err
		}
		names, err := r.names(conv)
		if err != nil {
			return err
		}
		members, models := map[string]Usage{}, map[string]Usage{}
		err = r.eachReply(conv, func(c reply) {
			report.Usage = report.Usage.plus(c.usage)
			members[c.member] = members[c.member].plus(c.usage)
			models[c.model] = models[c.model].plus(c.usage)
		})
		for _, id := range slices.Sorted(maps.Keys(members)) {
			report.Members = append(report.Members, MemberUsage{ID: id, Name: names.of(id), Usage: members[id]})
		}
		for _, model := range slices.Sorted(maps.Keys(models)) {
			report.Models = append(report.Models, ModelUsage{Model: model, Usage: models[model]})
		}
		return err
	})
	return report, err
}

// usage sums a conversation's model calls.
func (r reader) usage(conv int64) (Usage, error) {
	var total Usage
	err := r.eachReply(conv, func(c reply) { total = total.plus(c.usage) })
	return total, err
}

// reply is one answered model call.
type reply struct {
	run, member, model string
	usage              Usage
}

// eachReply goes through a conversation's answered model calls in order. Sums
// are made here, not in SQL, which fails when one leaves 64 bits.
func (r reader) eachReply(conv int64, fn func(reply)) error {
	return r.rows(func(rows *sql.Rows) error {
		var c reply
		var input, output, cached, cost int64
		var estimated bool
		if err := rows.Scan(&c.run, &c.member, &c.model, &input, &output, &cached, &cost, &estimated); err != nil {
			return err
		}
		c.usage = Usage{Calls: 1, InputTokens: count(input), OutputTokens: count(output), CachedTokens: count(cached), Cost: Money(count(cost))}
		if estimated {
			c.usage.EstimatedCalls = 1
		}
		fn(c)
		return nil
	}, `SELECT run, member, model, input_tokens, output_tokens, cached_tokens, cost_micros, estimated
		FROM usage WHERE conv = ? ORDER BY version, event`, conv)
}

// plus adds, and stays at the largest number there is.
func (u Usage) plus(v Usage) Usage {
	return Usage{
		Calls:          add(u.Calls, v.Calls),
		InputTokens:    add(u.InputTokens, v.InputTokens),
		OutputTokens:   add(u.OutputTokens, v.OutputTokens),
		CachedTokens:   add(u.CachedTokens, v.CachedTokens),
		EstimatedCalls: add(u.EstimatedCalls, v.EstimatedCalls),
		Cost:           Money(add(uint64(u.Cost), uint64(v.Cost))),
	}
}

func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
