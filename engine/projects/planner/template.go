package planner

import "strings"

// family is the words that ask for a template.
type family struct{ template, words string }

// families are tried in this order. They are not written.
var families = []family{
	{"go", " go golang "},
	{"npm", " node nodejs node.js npm javascript js "},
	{"cargo", " rust cargo "},
	{"dotnet", " dotnet .net c# csharp wpf winui winforms "},
	{"make", " c make makefile "},
}

// template returns the template that the clause of a new project states, empty if it states none.
func (f *form) template() string {
	name := f.clause.findWord(0, naming)
	for i := range families {
		for n := range f.clause {
			if f.clause[n].in(families[i].words) && (name < 0 || n != name+1) {
				return families[i].template
			}
		}
	}
	return ""
}

const naming = " named called "

// maxName is how long the name of a new project may be.
const maxName = 64

// name returns the name of a new project.
func (f *form) name(root string) string {
	name := root
	if i := f.clause.findWord(0, naming); i >= 0 && i+1 < len(f.clause) {
		name = f.clause[i+1].value
	}
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(name) {
		if r < 0x80 && (letter(byte(r)) || digit(byte(r)) || r == '_' || r == '-') {
			b.WriteRune(r)
			dash = false
		} else if !dash {
			b.WriteByte('-')
			dash = true
		}
	}
	name = strings.Trim(b.String(), "-")
	if name == "" || !letter(name[0]) {
		return "app"
	}
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}

// file is a file of a template.
type file struct{ path, content string }

// files returns the files of a new project, nil if no template is stated.
func (f *form) files(c *Config) []file {
	name := f.name(c.RootName)
	switch f.template() {
	case "go":
		return []file{
			{"go.mod", "module " + name + "\n\ngo 1.22\n"},
			{"main.go", "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"Hello from " +
				name + "\")\n}\n"},
		}
	case "npm":
		return []file{
			{"package.json", "{\n  \"name\": \"" + name + "\",\n  \"version\": \"0.1.0\",\n" +
				"  \"private\": true,\n  \"main\": \"index.js\",\n  \"scripts\": {\n" +
				"    \"build\": \"node --check index.js\",\n    \"start\": \"node index.js\"\n  }\n}\n"},
			{"index.js", "console.log('Hello from " + name + "');\n"},
		}
	case "cargo":
		return []file{
			{"Cargo.toml", "[package]\nname = \"" + name + "\"\nversion = \"0.1.0\"\nedition = \"2021\"\n" +
				"\n[dependencies]\n"},
			{"src/main.rs", "fn main() {\n    println!(\"Hello from " + name + "\");\n}\n"},
		}
	case "dotnet":
		return []file{
			{name + ".csproj", "<Project Sdk=\"Microsoft.NET.Sdk\">\n\n  <PropertyGroup>\n" +
				"    <OutputType>Exe</OutputType>\n    <TargetFramework>net8.0</TargetFramework>\n" +
				"  </PropertyGroup>\n\n</Project>\n"},
			{"Program.cs", "System.Console.WriteLine(\"Hello from " + name + "\");\n"},
		}
	case "make":
		return []file{
			{"Makefile", "CC ?= cc\n\n.PHONY: all run\n\nall: main\n\nmain: main.c\n" +
				"\t$(CC) -Wall -O2 -o main main.c\n\nrun: main\n\t./main\n"},
			{"main.c", "#include <stdio.h>\n\nint main(void)\n{\n\tputs(\"Hello from " + name +
				"\");\n\treturn 0;\n}\n"},
		}
	}
	return nil
}
