package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// errRefused is returned when a holder with a higher token has already written.
var errRefused = errors.New("refused")

const (
	createTable = `CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, token INTEGER NOT NULL) STRICT`
	openAccount = `INSERT INTO accounts (id, balance, token) VALUES (?, ?, 0)`
	readAccount = `SELECT balance, token FROM accounts WHERE id = ?`

	// The statement itself checks the token, so that no other write can happen between check and
	// write.
	fencedUpdate   = `UPDATE accounts SET balance = ?1, token = ?2 WHERE id = ?3 AND token <= ?2`
	unfencedUpdate = `UPDATE accounts SET balance = ?1, token = ?2 WHERE id = ?3`
)

// accountStore is a table of accounts. Each row stores the token of its last writer.
type accountStore struct {
	db     *sql.DB
	update string
}

// openAccountStore opens the database in a file. If it is not fenced, the last write wins.
func openAccountStore(file string, fenced bool) (*accountStore, error) {
	name := url.URL{Scheme: "file", Opaque: url.PathEscape(file), RawQuery: "_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	if fenced {
		return &accountStore{db, fencedUpdate}, nil
	}
	return &accountStore{db, unfencedUpdate}, nil
}

func (s *accountStore) close() error { return s.db.Close() }

// create makes the table, with one account.
func (s *accountStore) create(ctx context.Context, id string, balance int64) error {
	if _, err := s.db.ExecContext(ctx, createTable); err != nil {
		return fmt.Errorf("create the table: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, openAccount, id, balance); err != nil {
		return fmt.Errorf("open account %s: %w", id, err)
	}
	return nil
}

// read returns an account's balance and the highest token that has written it.
func (s *accountStore) read(ctx context.Context, id string) (balance, token int64, err error) {
	if err := s.db.QueryRowContext(ctx, readAccount, id).Scan(&balance, &token); err != nil {
		return 0, 0, fmt.Errorf("read account %s: %w", id, err)
	}
	return balance, token, nil
}

// write sets an account's balance, and is refused if the token is lower than the account's.
func (s *accountStore) write(ctx context.Context, id string, balance, token int64) error {
	result, err := s.db.ExecContext(ctx, s.update, balance, token, id)
	if err != nil {
		return fmt.Errorf("write account %s: %w", id, err)
	}
	rows, err := result.RowsAffected()
	if err != nil || rows == 1 {
		return err
	}
	_, newest, err := s.read(ctx, id) // either there is no such account, or it has a higher token
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: token %d is older than %d", errRefused, token, newest)
}
