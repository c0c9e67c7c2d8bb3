// SPDX-License-Identifier: Apache-2.0

//! JSON as far as `routing.json` uses it. Numbers are whole, and no name stands twice in an object.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`, `true`, `false`: no field of `routing.json` takes one.
    Word,
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Deeper than any field of `routing.json`, and no danger to the stack.
const MAX_DEPTH: usize = 16;

/// Reads a document; the error says what is wrong and at which byte.
pub(crate) fn parse(data: &[u8]) -> Result<Json, String> {
    let text = std::str::from_utf8(data).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))?;
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0);
    let value =
        value.and_then(|value| if parser.peek().is_none() { Ok(value) } else { Err("something stands behind the value") });
    value.map_err(|reason| format!("not the JSON of routing at byte {}: {reason}", parser.at))
}

type Parsed<T> = Result<T, &'static str>;

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Passes over white space, and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        let blank = self.rest().iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.at += blank;
        self.rest().first().copied()
    }

    /// Takes the next byte if it is this one.
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Parsed<Json> {
        if depth > MAX_DEPTH {
            return Err("too deep");
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Parsed<Json> {
        for word in ["null", "true", "false"] {
            if self.rest().starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(Json::Word);
            }
        }
        Err("no value")
    }

    fn object(&mut self, depth: usize) -> Parsed<Json> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        let mut names = std::collections::HashSet::new();
        self.eat(b'{');
        if self.eat(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err("no name of a field");
            }
            let name = self.string()?;
            if !names.insert(name.clone()) {
                return Err("a name stands twice in an object");
            }
            if !self.eat(b':') {
                return Err("no colon behind a name");
            }
            fields.push((name, self.value(depth + 1)?));
            if self.eat(b'}') {
                return Ok(Json::Object(fields));
            }
            if !self.eat(b',') {
                return Err("an object does not end");
            }
        }
    }

    fn list(&mut self, depth: usize) -> Parsed<Json> {
        let mut values = Vec::new();
        self.eat(b'[');
        if self.eat(b']') {
            return Ok(Json::List(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            if self.eat(b']') {
                return Ok(Json::List(values));
            }
            if !self.eat(b',') {
                return Err("a list does not end");
            }
        }
    }

    fn number(&mut self) -> Parsed<Json> {
        let rest = self.rest();
        let sign = usize::from(rest[0] == b'-');
        let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = sign + digits;
        if digits == 0 || digits > 1 && rest[sign] == b'0' || matches!(rest.get(end), Some(b'.' | b'e' | b'E')) {
            return Err("not a whole number");
        }
        let number = self.text[self.at..self.at + end].parse().map_err(|_| "a number is too large")?;
        self.at += end;
        Ok(Json::Number(number))
    }

    fn string(&mut self) -> Parsed<String> {
        let mut out = String::new();
        self.eat(b'"');
        loop {
            let plain = self.rest().iter().take_while(|&&byte| byte >= 0x20 && byte != b'"' && byte != b'\\').count();
            out.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.rest().first() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err("a text does not end, or has a control character"),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let letter = self.rest().get(1).copied();
        self.at += 2;
        Ok(match letter {
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => {
                self.at -= 2;
                return Err("not an escape");
            }
        })
    }

    fn unicode(&mut self) -> Parsed<char> {
        let high = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).ok_or("half of a surrogate pair");
        }
        if !self.rest().starts_with(b"\\u") {
            return Err("half of a surrogate pair");
        }
        self.at += 2;
        match self.four_digits()? {
            low @ 0xdc00..=0xdfff => char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or("not a character"),
            _ => Err("half of a surrogate pair"),
        }
    }

    fn four_digits(&mut self) -> Parsed<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.ok_or("not four hex digits")?;
        let number = digits.iter().fold(0, |sum, &digit| sum << 4 | char::from(digit).to_digit(16).unwrap_or(0));
        self.at += 4;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, Json};

    #[test]
    fn accepts() {
        let text = |s: &str| Json::Text(s.into());
        for (document, want) in [
            (" [ ] ", Json::List(vec![])),
            ("{}", Json::Object(vec![])),
            ("[1,-2,0,-0]", Json::List([1, -2, 0, 0].map(Json::Number).to_vec())),
            ("9223372036854775807", Json::Number(i64::MAX)),
            (r#""a\"\\\/\b\f\n\r\tä""#, text("a\"\\/\u{8}\u{c}\n\r\tä")),
            (r#""\u00e4\uD83D\ude00""#, text("ä😀")),
            ("{\"a\":null,\"b\":true}", Json::Object(vec![("a".into(), Json::Word), ("b".into(), Json::Word)])),
        ] {
            assert_eq!(parse(document.as_bytes()), Ok(want), "{document}");
        }
    }

    #[test]
    fn refuses() {
        let deep = "[".repeat(100_000);
        for document in [
            "",
            "nul",
            "[1,]",
            "[1",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":1,\"\\u0061\":2}",
            "01",
            "1.0",
            "1e3",
            "-",
            "+1",
            "9223372036854775808",
            "1 2",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\u{1}\"",
            "\"\\",
            "\u{feff}{}",
            &deep,
        ] {
            assert!(parse(document.as_bytes()).is_err(), "{:.40}", document);
        }
        assert!(parse(b"\"\xff\"").is_err());
    }
}
