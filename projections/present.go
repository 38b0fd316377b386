package projections

import (
	"github.com/rollcall-dev/rollcall/domain"
)

// writeState writes the rows that are a conversation's present: itself, its
// members with their open runs, its tasks and what it needs of the operator.
// Rows that are already so are not written again by SQLite.
func (b *batch) writeState(c *conversation) error {
	s := c.state
	data, err := s.Marshal()
	if err != nil {
		return err
	}
	if err := b.exec("INSERT INTO states (conv, state) VALUES (?, ?) ON CONFLICT (conv) DO UPDATE SET state = excluded.state", c.row, data); err != nil {
		return err
	}
	if err := b.exec("UPDATE conversations SET name = ?, contract = ?, status = ?, version = ?, updated = ? WHERE conv = ?",
		s.Name, s.Contract, s.Status(), number(s.Version), nanos(s.Time), c.row); err != nil {
		return err
	}
	for i, m := range s.Members {
		if err := b.writeMember(c, i, m); err != nil {
			return err
		}
	}
	for i, t := range s.Tasks {
		if err := b.writeTask(c, i, t); err != nil {
			return err
		}
	}
	if err := b.exec("DELETE FROM needs_operator WHERE conv = ?", c.row); err != nil {
		return err
	}
	for i, need := range s.Verdict().NeedsOperator {
		if err := b.exec("INSERT INTO needs_operator VALUES (?, ?, ?, ?)", c.row, i, need.Kind, need.ID); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) writeMember(c *conversation, ordinal int, m *domain.Member) error {
	run := ""
	if m.Run != nil {
		run = m.Run.ID
		status := "open"
		if m.Run.Suspended || m.Run.Phase == domain.Parked {
			status = "suspended"
		}
		if err := b.exec("UPDATE runs SET status = ? WHERE conv = ? AND id = ?", status, c.row, run); err != nil {
			return err
		}
	}
	reason := ""
	if m.LastReason != 0 {
		reason = domain.Word(m.LastReason)
	}
	return b.exec(`INSERT INTO members
		(conv, ordinal, id, name, role, agent_type, team, status, since, held, unread, run, last_reason, last_code, last_detail)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (conv, id) DO UPDATE SET name = excluded.name, role = excluded.role, agent_type = excluded.agent_type,
		team = excluded.team, status = excluded.status, since = excluded.since, held = excluded.held, unread = excluded.unread,
		run = excluded.run, last_reason = excluded.last_reason, last_code = excluded.last_code, last_detail = excluded.last_detail`,
		c.row, ordinal, m.ID, m.Name, domain.Word(m.Role), m.AgentType, m.Team, domain.Word(m.Status), nanos(m.Since),
		m.Held, len(m.Unread), run, reason, m.LastCode, m.LastDetail)
}

func (b *batch) writeTask(c *conversation, ordinal int, t *domain.Task) error {
	return b.exec(`INSERT INTO tasks
		(conv, ordinal, id, title, description, owner, dependencies, creator, team, status, reason, failure, result, paths,
		completed_by, revision, stale, stale_reason, created, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (conv, id) DO UPDATE SET title = excluded.title, description = excluded.description, owner = excluded.owner,
		dependencies = excluded.dependencies, creator = excluded.creator, team = excluded.team, status = excluded.status,
		reason = excluded.reason, failure = excluded.failure, result = excluded.result, paths = excluded.paths,
		completed_by = excluded.completed_by, revision = excluded.revision, stale = excluded.stale,
		stale_reason = excluded.stale_reason, created = excluded.created, updated = excluded.updated`,
		c.row, ordinal, t.ID, t.Title, t.Description, t.Owner, list(t.Dependencies), t.Creator, t.Team, domain.Word(t.Status),
		t.Reason, t.Failure, t.Result, list(t.Paths), t.CompletedBy, t.Revision, t.Stale, t.StaleReason, nanos(t.Created), nanos(t.Updated))
}
