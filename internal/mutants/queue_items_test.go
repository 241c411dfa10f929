package mutants

func init() { lists["queue_items"] = queueItemsMutants }

// queueItemsMutants are the safeguards of package queue about what belongs to an item.
var queueItemsMutants = []mutant{
	{
		name: "an item that is moved forgets when it was put", file: "queue/envelope.go", test: "TestHeadersAndTheTimeOfThePutStay",
		old: "if err == nil && e.header.Put == 0 {", new: "if false {",
	},
	{
		name: "a consumer changes the headers that are stored", file: "queue/queue.go", test: "TestHeadersAndTheTimeOfThePutStay",
		old: "Headers: maps.Clone(d.env.header.Headers)", new: "Headers: func() map[string]string { _ = maps.Clone[map[string]string]; return d.env.header.Headers }()",
	},
	{
		name: "a batch's headers are not counted", file: "queue/queue.go", test: "TestHeadersAreBounded",
		old: "size += len(payload) + extra", new: "size += len(payload) + 0*extra",
	},
}
