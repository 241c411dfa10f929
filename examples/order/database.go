package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/lockstep-go/lockstep/workflow"
)

// errRefused is returned when an executor with a higher token has written before.
var errRefused = errors.New("refused")

const (
	createOrders   = `CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT NOT NULL, token INTEGER NOT NULL) STRICT`
	createPayments = `CREATE TABLE payments (key TEXT PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, amount INTEGER NOT NULL) STRICT`

	// The statement itself checks the token. The order's row remembers the highest token that has
	// written.
	fencedUpdate = `INSERT INTO orders (id, state, token) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET state = ?2, token = ?3 WHERE token <= ?3`
	// One payment for each key. The same key again changes nothing.
	keyedPayment = `INSERT INTO payments (key, order_id, amount) VALUES (?1, ?2, ?3) ON CONFLICT (key) DO NOTHING`

	readOrder    = `SELECT state, token FROM orders WHERE id = ?`
	readPayments = `SELECT count(*), coalesce(sum(amount), 0) FROM payments WHERE order_id = ?`
)

// database is the shop's database: the state of each order, and what its customer was charged.
type database struct {
	db *sql.DB
}

// openDatabase opens the database in a file. Each transaction locks the database from its
// beginning, so that two processes write one after the other.
func openDatabase(file string) (*database, error) {
	name := url.URL{Scheme: "file", Opaque: url.PathEscape(file),
		RawQuery: "_pragma=busy_timeout(10000)&_txlock=immediate"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return &database{db}, nil
}

func (l *database) close() error { return l.db.Close() }

func (l *database) create(ctx context.Context) error {
	for _, statement := range []string{createOrders, createPayments} {
		if _, err := l.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create the tables: %w", err)
		}
	}
	return nil
}

// setState writes the state of an order. The write is refused if the token is lower than the
// highest that has written.
func (l *database) setState(ctx context.Context, order, state string, key workflow.Key) error {
	return l.write(ctx, order, state, key, nil)
}

// charge charges an order's customer and writes the order's state, both or neither. It is refused
// as setState is. A customer who was charged with this key before is not charged again.
func (l *database) charge(ctx context.Context, order string, amount int64, key workflow.Key) error {
	return l.write(ctx, order, "charged", key, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, keyedPayment, key.ID, order, amount)
		return err
	})
}

// write writes an order's state, if the token is high enough, and calls more, in one transaction. A
// process that is killed leaves all of it or none.
func (l *database) write(ctx context.Context, order, state string, key workflow.Key, more func(*sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // it fails after the commit
	result, err := tx.ExecContext(ctx, fencedUpdate, order, state, key.Token)
	if err != nil {
		return fmt.Errorf("write order %s: %w", order, err)
	}
	rows, err := result.RowsAffected()
	if err == nil && rows == 0 {
		err = fmt.Errorf("%w: token %d is older than that of order %s", errRefused, key.Token, order)
	}
	if err == nil && more != nil {
		err = more(tx)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// orderRecord is what the database has of an order.
type orderRecord struct {
	State    string
	Token    int64 // the highest that has written
	Payments int64
	Amount   int64 // of all payments
}

func (l *database) read(ctx context.Context, order string) (b orderRecord, err error) {
	if err = l.db.QueryRowContext(ctx, readOrder, order).Scan(&b.State, &b.Token); err == nil {
		err = l.db.QueryRowContext(ctx, readPayments, order).Scan(&b.Payments, &b.Amount)
	}
	if err != nil {
		return b, fmt.Errorf("read order %s: %w", order, err)
	}
	return b, nil
}
