package projections

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/rollcall-dev/rollcall/domain"
)

// unread is the condition for mail that a run has still to consume. Mail to
// the operator has no reader in the log, control mail acts at once, and a
// member that was shut down reads no more.
const unread = `(m.run = '' AND m.kind <> 'control' AND m.recipient IN (SELECT id FROM members u WHERE u.conv = m.conv AND u.status <> 'shutdown'))`

// Mail lists the messages to a member (by id; "user" is the operator), or to
// everybody when member is empty, in the order of delivery. A limit above 0
// keeps the newest. Errors: a *domain.Refusal for an unknown conversation.
func (db *DB) Mail(ctx context.Context, key domain.Key, member string, limit int, onlyUnread bool) ([]Message, error) {
	found := []Message{}
	err := db.query(ctx, "mail", func(r reader) error {
		conv, err := r.row(key)
		if err != nil {
			return err
		}
		names, err := r.names(conv)
		if err != nil {
			return err
		}
		if limit <= 0 {
			limit = math.MaxInt32
		}
		err = r.rows(func(rows *sql.Rows) error {
			m, err := scanMessage(rows)
			m.From, m.To = names.of(m.FromID), names.of(m.ToID)
			found = append(found, m)
			return err
		}, `SELECT m.id, m.version, m.time, m.kind, m.sender, m.recipient, m.mode, m.topic, m.task, m.about, m.reply_to, m.wait_for_reply,
			m.body, m.body_hash, m.body_size, m.run, m.read_version, m.read_time, m.returned, `+unread+`
			FROM mail m WHERE m.conv = ?1 AND (?2 = '' OR m.recipient = ?2) AND (NOT ?3 OR `+unread+`)
			ORDER BY m.version DESC, m.event DESC LIMIT ?4`, conv, member, onlyUnread, limit)
		slices.Reverse(found)
		return err
	})
	return found, err
}

func scanMessage(rows *sql.Rows) (Message, error) {
	var m Message
	var text, hash string
	var waiting bool
	var version, at, size, consumedAt, consumed int64
	err := rows.Scan(&m.ID, &version, &at, &m.Kind, &m.FromID, &m.ToID, &m.Mode, &m.Topic, &m.Task, &m.About, &m.ReplyTo, &m.WaitForReply,
		&text, &hash, &size, &m.Run, &consumedAt, &consumed, &m.Returned, &waiting)
	m.Version, m.Time, m.Text = count(version), moment(at), textOf(text, hash, size)
	m.ConsumedAt, m.Consumed = count(consumedAt), moment(consumed)
	switch {
	case waiting:
		m.State = "unread"
	case m.Run != "":
		m.State = "consumed"
	default:
		m.State = "sent"
	}
	return m, err
}

// mailCounts counts the mail of each recipient and of all.
func (r reader) mailCounts(conv int64) (by map[string]MailCounts, total MailCounts, err error) {
	by = map[string]MailCounts{}
	err = r.rows(func(rows *sql.Rows) error {
		var recipient string
		var c MailCounts
		if err := rows.Scan(&recipient, &c.Delivered, &c.Consumed, &c.Unread); err != nil {
			return err
		}
		by[recipient] = c
		total.Delivered += c.Delivered
		total.Consumed += c.Consumed
		total.Unread += c.Unread
		return nil
	}, `SELECT m.recipient, count(*), count(*) FILTER (WHERE m.run <> ''), count(*) FILTER (WHERE `+unread+`) FROM mail m WHERE m.conv = ? GROUP BY m.recipient`, conv)
	return by, total, err
}
