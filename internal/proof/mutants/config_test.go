package mutants

// configMutants are the safeguards of package config.
var configMutants = []mutant{
	{
		promise: "A `config.Tree` shows what all its nodes were at one moment",
		name:    "a key changes what the default refers to", file: "config/treekeys.go",
		test: "TestAKeyChangesNoOtherValue",
		old:  "			v.SetZero() //", new: "			_ = v //",
	},
	{
		promise: "A `config.Tree` shows what all its nodes were at one moment",
		name:    "a tree's nodes are not read twice", file: "config/treereader.go", test: "TestATreeShowsOneMoment",
		old: "if same, err := r.isSame(ctx, s); same || err != nil {", new: "if _, err := r.isSame(ctx, s); true {",
	},
	{
		promise: "A `config.Tree` shows what all its nodes were at one moment",
		name:    "a tree is read without a sync", file: "config/treereader.go", test: "TestATreeReadsBehindASync",
		old: "\tr.resync.Store(true)\n\tfor {", new: "\tr.resync.Store(false)\n\tfor {",
	},
	{
		promise: "A value that does not decode or is not valid is not shown and not",
		name:    "a value that is not valid is shown", file: "config/value.go", test: "TestARefusedValueIsKeptOut",
		old: "if err == nil {\n\t\terr = v.validateValue(value)",
		new: "if err == nil && false {\n\t\terr = v.validateValue(value)",
	},
	{
		promise: "A value that does not decode or is not valid is not shown and not",
		name:    "a refused value takes the place of the last good one", file: "config/value.go",
		test: "TestARefusedValueIsKeptOut",
		old:  "if refused == nil {\n\t\tv.current.Store(next)",
		new:  "if next == nil {\n\t\tnext = &Snapshot[T]{}\n\t}\n\tif true {\n\t\tv.current.Store(next)",
	},
	{
		promise: "`Set` writes a value once",
		name:    "If is not checked", file: "config/store.go", test: "TestIfWritesOnlyOverTheVersionThatWasRead",
		old: "if w.conditional && now.Zxid != w.wanted {", new: "if w.conditional && now.Zxid != w.wanted && false {",
	},
	{
		promise: "`Set` writes a value once",
		name:    "a lost reply is not looked up", file: "config/store.go", test: "TestALostReplyOfSetIsSettled",
		old: "if w.unknown {\n\t\tapplied", new: "if w.unknown && false {\n\t\tapplied",
	},
	{
		promise: "`Set` writes a value once",
		name:    "a try whose records are gone is repeated", file: "config/store.go",
		test: "TestASetThatManyOthersFollowIsNotGuessed",
		old:  "if len(names) >= historySize-1 {", new: "if false {",
	},
	{
		promise: "`Set` writes a value once",
		name:    "an unknown outcome is not told", file: "config/store.go",
		test: "TestASetWhoseContextEndsTellsThatItsOutcomeIsUnknown",
		old:  "if err != nil && w.unknown &&", new: "if err != nil && w.unknown && false &&",
	},
	{
		promise: "A program starts from its file while the servers are down",
		name:    "a file's checksum is not compared", file: "internal/lastgood/lastgood.go",
		test: "TestADamagedOrForeignFileIsRefused",
		old:  "if string(sum) != checksum(rest) {", new: "if string(sum) != checksum(rest) && false {",
	},
}
