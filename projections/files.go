package projections

import (
	"context"
	"database/sql"

	"github.com/rollcall-dev/rollcall/domain"
)

// Files lists the files of a member's workspace (by id), or of all when member
// is empty, by member and path. Errors: a *domain.Refusal for an unknown
// conversation.
func (db *DB) Files(ctx context.Context, key domain.Key, member string) ([]File, error) {
	found := []File{}
	err := db.query(ctx, "files", func(r reader) error {
		conv, err := r.row(key)
		if err != nil {
			return err
		}
		names, err := r.names(conv)
		if err != nil {
			return err
		}
		return r.rows(func(rows *sql.Rows) error {
			var f File
			var size, version, at int64
			if err := rows.Scan(&f.MemberID, &f.Path, &f.SHA256, &size, &version, &at); err != nil {
				return err
			}
			f.Member, f.Size, f.Version, f.Time = names.of(f.MemberID), count(size), count(version), moment(at)
			found = append(found, f)
			return nil
		}, "SELECT member, path, hash, size, version, time FROM files WHERE conv = ?1 AND (?2 = '' OR member = ?2) ORDER BY member, path", conv, member)
	})
	return found, err
}
