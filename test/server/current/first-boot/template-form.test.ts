/** The form of a first-boot template: what it shows reads back the same, and what it cannot show stays. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import * as fc from 'fast-check'
import { keepSecrets, parseTemplate, type Template } from '#engine/first-boot/rules/template.ts'
import {
  parseFields,
  fieldsOf,
  hideTyped,
  listKept,
  readFields,
  SECTIONS,
} from '#server/current/first-boot/template-form.ts'

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB ada@example'
const HASH = '$6$abcdefgh$0123456789abcdefghij'

const test = suite('the form of a template')

const line = fc.string({ minLength: 1, maxLength: 30 })
const text = fc.oneof(
  line,
  fc.stringMatching(/^[a-z \n\r\t"'=]{1,30}$/),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
)
const name = fc.stringMatching(/^[a-z_][a-z0-9_-]{0,8}$/)
const maybe = <Value>(of: fc.Arbitrary<Value>) => fc.option(of, { nil: undefined })

const user = fc.record({
  name,
  ssh_keys: fc.array(
    fc.oneof(fc.constant(KEY), fc.stringMatching(/^ssh-rsa AAAA=( [ -~]{0,9})?$/)),
    { maxLength: 3 },
  ),
  sudo: fc.boolean(),
  password_hash: maybe(fc.constantFrom('{{secret.a}}', '{{secret.b}}')),
})

/** Everything that the API takes, also what no form would write. */
const template = fc
  .record({
    hostname: fc.option(text),
    users: fc.array(user, { maxLength: 4 }),
    packages: fc.array(fc.stringMatching(/^[a-z0-9][a-z+.:~=_-]{0,9}$/), { maxLength: 4 }),
    files: maybe(
      fc.array(
        fc.record({
          path: name.map((each) => `/etc/${each}`),
          mode: fc.constantFrom('0644', '0755'),
          text: fc.oneof(text, fc.constant('')),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    ),
    commands: fc.array(text, { maxLength: 3 }),
    network: fc.option(
      fc.constantFrom(
        'version: 2\nethernets:\n  all:\n    match: {name: "e*"}\n    dhcp4: true\n',
        'version: 2\n',
        'version: 1\r\nconfig: disabled',
      ),
    ),
    user_data: fc.option(text.map((each) => `#!${each}`)),
    secrets: fc.constant({ a: HASH, b: null, c: ' two\nlines ' }),
  })
  .map((body) => parseTemplate(body))
  .filter((parsed) => parsed.ok)
  .map((parsed): Template => {
    if (!parsed.ok) throw new Error('filtered')
    return parsed.value
  })

/** What a browser makes of the fields: an address, lines that end in CRLF, and no checkbox that is off. */
function send(fields: Readonly<Record<string, string>>): URLSearchParams {
  const sent = new URLSearchParams()
  for (const [key, value] of Object.entries(fields)) {
    sent.append(key, value.toWellFormed().replaceAll(/\r\n?|\n/g, '\r\n'))
  }
  return new URLSearchParams(sent.toString())
}

const shownOf = (one: Template): string =>
  SECTIONS.filter((section) => !listKept(one).includes(section)).join(' ')

test('a template that is opened and saved is the same, byte for byte', () => {
  fc.assert(
    fc.property(template, (one) => {
      const form = send({ ...fieldsOf(one), shown: shownOf(one) })
      const parsed = parseFields(readFields(form), one)
      assert.ok(parsed.ok, JSON.stringify(parsed))
      if (!parsed.ok) return
      assert.is(JSON.stringify(keepSecrets(parsed.value, one)), JSON.stringify(one))
    }),
    { numRuns: 400 },
  )
})

const make = (body: object): Template => {
  const parsed = parseTemplate(body)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.refusal))
  return parsed.value
}

test('what it cannot show is named, and stays while the rest is changed', () => {
  const one = make({ commands: ['if true\nthen false; fi'], packages: ['curl'] })
  assert.equal(listKept(one), ['commands'])
  const form = send({ ...fieldsOf(one), packages: 'vim', shown: shownOf(one) })
  const parsed = parseFields(readFields(form), one)
  assert.ok(parsed.ok && parsed.value.packages[0] === 'vim')
  assert.ok(parsed.ok && parsed.value.commands[0] === 'if true\nthen false; fi')
  assert.equal(listKept(make({ hostname: 'a\nb' })), ['hostname'])
  assert.equal(listKept(make({ user_data: '#!/bin/sh\r\n' })), ['user_data'])
})

const check = (fields: Readonly<Record<string, string>>) => {
  const parsed = parseFields(readFields(send({ shown: SECTIONS.join(' '), ...fields })), null)
  return parsed.ok ? parsed.value : parsed.refusal
}

test('each error stands at its field, also behind rows that were left empty', () => {
  assert.equal(
    check({
      'user-2-name': 'Ada L',
      'user-3-name': 'bob',
      'user-3-keys': `${KEY}\nAAAA`,
      packages: 'curl -y',
      'file-1-path': 'etc/motd',
      hostname: '{{nam}}',
      network: 'static',
      address: '192.0.2.1',
    }),
    {
      'user-2-name': 'Enter a user name such as ada: lower-case letters, digits, _ and -.',
      'user-3-keys':
        'Key 2 is no public key. One looks like ssh-ed25519 AAAA… ada@example, on one line.',
      packages: 'Package 2 is not the name of a package.',
      'file-1-path': 'A path that begins with /, such as /etc/motd.',
      hostname:
        '{{nam}} is not a placeholder: there are {{name}}, {{mac}}, {{serial}}, {{label.…}} and {{secret.…}}.',
      address: 'Enter an IP address with its prefix length, such as 192.0.2.10/24.',
    },
  )
  assert.equal(check({ document: '{' }), { document: 'This is no JSON.' })
})

test('the hash of a password becomes a secret, and nothing that was typed of it comes back', () => {
  const typed = { 'user-0-name': 'ada', 'user-0-password': HASH, secrets: 'x=1' }
  const made = make(check(typed))
  assert.equal(made.users[0]?.password_hash, '{{secret.password-ada}}')
  assert.equal(made.secrets, { x: '1', 'password-ada': HASH })
  const hidden = hideTyped(typed)
  assert.equal(hidden, { 'user-0-name': 'ada', 'user-0-password': '', secrets: 'x=' })
  assert.is(
    JSON.stringify(check({ ...typed, 'user-0-password': 'hunter2' })).includes('hunter2'),
    false,
  )
})

test.run()
