package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"time"
)

// readTable reads the CSV file of a run.
func readTable(file string) (seriesByName, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	c := seriesByName{}
	for i, row := range rows[min(1, len(rows)):] {
		seconds, err := strconv.ParseFloat(row[0], 64)
		if err != nil || len(row) != 4 {
			return nil, fmt.Errorf("%s: row %d is not one of a run: %q", file, i+2, row)
		}
		value, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", file, i+2, err)
		}
		c.add(row[1], row[2], point{time.Duration(seconds * float64(time.Second)), value})
	}
	return c, nil
}

// redraw draws the CSV file of an earlier run.
func redraw(o options) error {
	c, err := readTable(o.table)
	if err != nil {
		return err
	}
	return os.WriteFile(o.out+".svg", []byte(draw(c)), 0o644)
}
