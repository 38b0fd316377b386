package projections

import (
	"context"
	"database/sql"

	"github.com/rollcall-dev/rollcall/domain"
)

// Conversations lists a tenant's conversations, oldest first.
func (db *DB) Conversations(ctx context.Context, tenant string) ([]Conversation, error) {
	var found []Conversation
	err := db.query(ctx, "conversations", func(r reader) (err error) {
		found, err = r.conversations("c.tenant = ?", tenant)
		return err
	})
	return found, err
}

// Conversation is one conversation in full: with tasks, mail counts, runs,
// usage and the Lead's answer. An unknown one is a *domain.Refusal.
func (db *DB) Conversation(ctx context.Context, key domain.Key) (Detail, error) {
	var d Detail
	err := db.query(ctx, "conversation", func(r reader) error {
		conv, err := r.row(key)
		if err != nil {
			return err
		}
		heads, err := r.conversations("c.conv = ?", conv)
		if err != nil {
			return err
		}
		d.Conversation = heads[0]
		d.Tasks.TaskCounts = d.Conversation.Tasks
		if d.Tasks.List, err = r.tasks(conv); err != nil {
			return err
		}
		if d.Members, d.Mail, err = r.members(conv); err != nil {
			return err
		}
		if d.Runs, err = r.runs(conv, ""); err != nil {
			return err
		}
		if d.Usage, err = r.usage(conv); err != nil {
			return err
		}
		d.Answer, err = r.answer(conv)
		return err
	})
	return d, err
}

// conversations reads heads. where is one of ours, never a user's text.
func (r reader) conversations(where string, arg any) ([]Conversation, error) {
	found := []Conversation{}
	at := map[int64]int{}
	err := r.rows(func(rows *sql.Rows) error {
		var conv, version, opened, updated, known int64
		var fault Fault
		c := Conversation{Members: []Member{}, NeedsOperator: []Need{}}
		if err := rows.Scan(&conv, &c.Tenant, &c.ID, &c.Name, &c.Contract, &c.Status, &version, &opened, &updated, &fault.Code, &fault.Why, &known); err != nil {
			return err
		}
		c.Version, c.Opened, c.Updated = count(version), moment(opened), moment(updated)
		if c.Fault = tailFault(version, known); fault.Code != "" {
			c.Fault = &fault
		}
		if c.Fault != nil {
			c.Status = "quarantined"
		}
		at[conv] = len(found)
		found = append(found, c)
		return nil
	}, `SELECT c.conv, c.tenant, c.id, c.name, c.contract, c.status, c.version, c.opened, c.updated, c.fault, c.fault_why,
		coalesce((SELECT t.version FROM tails t, position p WHERE t.tenant = c.tenant AND t.id = c.id AND p.seq >= t.until), 0)
		FROM conversations c WHERE `+where+` ORDER BY c.conv`, arg)
	if err != nil {
		return nil, err
	}
	err = r.rows(func(rows *sql.Rows) error {
		var conv int64
		var m Member
		if err := rows.Scan(&conv, &m.ID, &m.Name, &m.Status, &m.Unread); err != nil {
			return err
		}
		c := &found[at[conv]]
		c.Members = append(c.Members, m)
		return nil
	}, `SELECT m.conv, m.id, m.name, m.status, m.unread FROM members m JOIN conversations c USING (conv)
		WHERE NOT (m.role = 'subagent' AND m.status = 'shutdown') AND `+where+` ORDER BY m.conv, m.ordinal`, arg)
	if err != nil {
		return nil, err
	}
	err = r.rows(func(rows *sql.Rows) error {
		var conv int64
		var open, failed int
		if err := rows.Scan(&conv, &open, &failed); err != nil {
			return err
		}
		found[at[conv]].Tasks = TaskCounts{Open: open, Failed: failed}
		return nil
	}, `SELECT t.conv, count(*) FILTER (WHERE t.status NOT IN ('completed', 'failed', 'cancelled')), count(*) FILTER (WHERE t.status = 'failed')
		FROM tasks t JOIN conversations c USING (conv) WHERE `+where+` GROUP BY t.conv`, arg)
	if err != nil {
		return nil, err
	}
	err = r.rows(func(rows *sql.Rows) error {
		var conv int64
		var n Need
		if err := rows.Scan(&conv, &n.Kind, &n.ID); err != nil {
			return err
		}
		c := &found[at[conv]]
		c.NeedsOperator = append(c.NeedsOperator, n)
		return nil
	}, `SELECT n.conv, n.kind, n.id FROM needs_operator n JOIN conversations c USING (conv)
		WHERE `+where+` ORDER BY n.conv, n.ordinal`, arg)
	return found, err
}

func (r reader) members(conv int64) ([]MemberDetail, MailCounts, error) {
	mail, total, err := r.mailCounts(conv)
	if err != nil {
		return nil, total, err
	}
	found := []MemberDetail{}
	err = r.rows(func(rows *sql.Rows) error {
		var m MemberDetail
		var since int64
		if err := rows.Scan(&m.ID, &m.Name, &m.Status, &m.Unread, &m.Role, &m.AgentType, &m.Team, &since, &m.Held, &m.Run,
			&m.LastReason, &m.LastCode, &m.LastDetail); err != nil {
			return err
		}
		m.Since, m.Mail = moment(since), mail[m.ID]
		found = append(found, m)
		return nil
	}, `SELECT id, name, status, unread, role, agent_type, team, since, held, run, last_reason, last_code, last_detail
		FROM members WHERE conv = ? ORDER BY ordinal`, conv)
	return found, total, err
}

func (r reader) tasks(conv int64) ([]Task, error) {
	found := []Task{}
	err := r.rows(func(rows *sql.Rows) error {
		var t Task
		var dependencies, paths string
		var created, updated int64
		if err := rows.Scan(&t.ID, &t.Title, &t.Description, &t.Owner, &dependencies, &t.Creator, &t.Team, &t.Status, &t.Reason, &t.Failure,
			&t.Result, &paths, &t.CompletedBy, &t.Revision, &t.Stale, &t.StaleReason, &created, &updated); err != nil {
			return err
		}
		var err error
		if t.Dependencies, err = unlist(dependencies); err != nil {
			return err
		}
		if t.Paths, err = unlist(paths); err != nil {
			return err
		}
		t.Created, t.Updated = moment(created), moment(updated)
		found = append(found, t)
		return nil
	}, `SELECT id, title, description, owner, dependencies, creator, team, status, reason, failure, result, paths, completed_by,
		revision, stale, stale_reason, created, updated FROM tasks WHERE conv = ? ORDER BY ordinal`, conv)
	return found, err
}

func (r reader) answer(conv int64) (*Answer, error) {
	var text, hash string
	var version, size int64
	err := r.tx.QueryRowContext(r.ctx, "SELECT answer, answer_hash, answer_size, answer_at FROM conversations WHERE conv = ?", conv).
		Scan(&text, &hash, &size, &version)
	if err != nil || version == 0 {
		return nil, err
	}
	return &Answer{Version: count(version), Text: textOf(text, hash, size)}, nil
}
