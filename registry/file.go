package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/lastgood"
)

// listFile is the kind of the files of WithFile. Their largest size has room for some 30,000
// instances.
var listFile = lastgood.Kind{Name: "registry", MaxBytes: 16 << 20}

// filePath returns the service's path with the client's root, by which a file names its service.
func (p *Pool) filePath() string {
	return strings.TrimSuffix(p.registry.client.Config().Root, "/") + p.registry.serviceDir(p.service)
}

// readFile makes the list of the file the present one. It ignores a missing file, and logs one that
// it cannot read.
func (p *Pool) readFile() {
	if p.err != nil || p.opts.file == "" {
		return
	}
	content, err := listFile.Read(p.opts.file, p.filePath())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var records []json.RawMessage
	if err == nil {
		err = json.Unmarshal(content.Data, &records)
	}
	var all []Instance
	for _, record := range records {
		var named instanceRecord
		var i Instance
		if err = json.Unmarshal(record, &named); err == nil {
			i, err = decodeInstance(p.service, named.ID, record)
		}
		if err != nil {
			break
		}
		all = append(all, i)
	}
	if err != nil {
		p.registry.client.Logger().Warn("the file with the last list is ignored", "path",
			p.registry.serviceDir(p.service), "file", p.opts.file, "error", err)
		return
	}
	if len(all) > 0 {
		p.stored = content.Data
		l := newList(content.Written, all, nil)
		l.fromFile = true
		p.list.Store(l)
	}
}

// writeFile stores a list in the file, unless the file has the same list already. It logs an error.
func (p *Pool) writeFile(at time.Time, all []Instance) {
	if p.opts.file == "" {
		return
	}
	records := make([]json.RawMessage, len(all))
	for n, i := range all {
		records[n] = encodeInstance(i, nil)
	}
	data := mustEncode(json.Marshal(records))
	if bytes.Equal(data, p.stored) {
		return
	}
	if err := listFile.Write(p.opts.file, lastgood.Content{Path: p.filePath(), Written: at, Data: data}); err != nil {
		p.registry.client.Logger().Warn("the last list cannot be stored in a file", "path",
			p.registry.serviceDir(p.service), "file", p.opts.file, "error", err)
		return
	}
	p.stored = data
}
