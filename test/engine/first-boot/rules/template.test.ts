/** First-boot templates: what is refused, how secrets are hidden and kept, and what is rendered. */
import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  exampleOf,
  type FirstBoot,
  renderFirstBoot,
  type TemplateSubject,
} from '#engine/first-boot/rules/seed.ts'
import {
  DOTS,
  findNetworkMistakes,
  findUserDataProblem,
  hideSecrets,
  keepSecrets,
  parseTemplate,
  readNetwork,
  renderNetwork,
  type Template,
} from '#engine/first-boot/rules/template.ts'
import { parseMac } from '#kit/net/rules/mac.ts'

const mac = parseMac('aa:bb:cc:dd:ee:ff')
if (!mac.ok) throw new Error('a MAC')
const SUBJECT: TemplateSubject = {
  name: 'web-1',
  mac: mac.value,
  serial: 'SN 42/7',
  labels: ['rack-12', 'racks', 'site berlin'],
}
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB ada@example'
const OPTIONS = { instance: 'flasher-1', secrets: 'filled' } as const

function make(body: object): Template {
  const parsed = parseTemplate(body)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.refusal))
  return parsed.value
}

function refusalOf(body: object): string {
  const parsed = parseTemplate(body)
  assert.not(parsed.ok)
  return parsed.ok
    ? ''
    : parsed.refusal.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('\n')
}

const render = (body: object, subject: Partial<TemplateSubject> = {}) =>
  renderFirstBoot(make(body), { ...SUBJECT, ...subject }, OPTIONS)

const refusals = suite('a template')

refusals('names an unknown placeholder, and where it stands', () => {
  assert.match(
    refusalOf({ hostname: '{{hostnam}}' }),
    /^body\.hostname: \{\{hostnam\}\} is not a placeholder: there are \{\{name\}\}/,
  )
  assert.match(
    refusalOf({ commands: ['true', 'echo {{ label. }}'] }),
    /^body\.commands\.1: \{\{label\.\}\}/,
  )
  assert.match(
    refusalOf({ user_data: '#!/bin/sh\necho {{secret.x}}' }),
    /^body\.user_data: \{\{secret\.x\}\}: there is no such secret/,
  )
})

refusals('is a text or parts, and the text one that is read', () => {
  assert.match(
    refusalOf({ user_data: '#cloud-config\n', packages: ['curl'] }),
    /cannot be combined with users/,
  )
  assert.match(refusalOf({ user_data: 'hostname: x' }), /begin with #cloud-config/)
  assert.match(refusalOf({ user_data: '{"ignition":{"version":"2.2.0"}}' }), /ignition\.version 3/)
  assert.match(refusalOf({ users: [{ name: 'Ada L' }] }), /a user name/)
  assert.match(refusalOf({ users: [{ name: 'ada', ssh_keys: ['AAAA'] }] }), /a public key/)
  assert.match(refusalOf({ packages: ['a b'] }), /the name of a package/)
  assert.match(refusalOf({ hostnme: 'x' }), /hostnme/)
})

refusals('shows secrets as dots, which keep what was there', () => {
  const stored = make({ secrets: { token: 'geheim', empty: null } })
  const shown = hideSecrets(stored)
  assert.equal(shown.secrets, { token: DOTS, empty: null })
  assert.equal(keepSecrets(shown, stored).secrets, stored.secrets)
  assert.equal(keepSecrets(make({ secrets: { token: 'new', more: DOTS } }), stored).secrets, {
    token: 'new',
    more: null,
  })
})

const rendering = suite('a template for a machine')

rendering('is a cloud-config, meta-data and a network configuration', () => {
  const made = render({
    hostname: '{{name}}.{{label.site}}.example',
    users: [{ name: 'ada', ssh_keys: [KEY], sudo: true }],
    packages: ['curl'],
    commands: ['echo {{mac}} {{serial}} {{label.rack}}'],
    network: 'version: 2\nethernets: {}',
  })
  assert.ok(made.ok)
  const { cloudInit, ignition, reason } = made.value
  assert.is(ignition, null)
  assert.match(reason ?? '', /packages/)
  assert.is(cloudInit?.['network-config'], 'version: 2\nethernets: {}\n')
  assert.is(
    cloudInit?.['meta-data'],
    'instance-id: "flasher-1"\nlocal-hostname: "web-1.berlin.example"\n',
  )
  const [first, ...rest] = (cloudInit?.['user-data'] ?? '').split('\n')
  assert.is(first, '#cloud-config')
  assert.equal(JSON.parse(rest.join('\n')), {
    hostname: 'web-1.berlin.example',
    manage_etc_hosts: 'localhost',
    users: [
      {
        name: 'ada',
        lock_passwd: true,
        shell: '/bin/bash',
        ssh_authorized_keys: [KEY],
        sudo: 'ALL=(ALL) NOPASSWD:ALL',
      },
    ],
    package_update: true,
    packages: ['curl'],
    runcmd: ['echo aa:bb:cc:dd:ee:ff SN 42/7 12'],
  })
})

rendering('is an Ignition configuration where Ignition can do all of it', () => {
  const made = render({
    hostname: 'n-{{mac}}',
    users: [{ name: 'ada', ssh_keys: [KEY], sudo: true }],
    commands: ['echo 100%'],
  })
  assert.ok(made.ok)
  const config = JSON.parse(made.value.ignition ?? '')
  assert.is(config.ignition.version, '3.3.0')
  assert.equal(config.passwd.users, [{ name: 'ada', sshAuthorizedKeys: [KEY] }])
  const files = config.storage.files.map((file: { path: string; contents: { source: string } }) => [
    file.path,
    decodeURIComponent(file.contents.source.slice('data:,'.length)),
  ])
  assert.equal(files, [
    ['/etc/hostname', 'n-aa-bb-cc-dd-ee-ff\n'],
    ['/etc/sudoers.d/ada', 'ada ALL=(ALL) NOPASSWD:ALL\n'],
    ['/etc/flasher/first-boot.sh', '#!/bin/sh\necho 100%\n'],
  ])
  assert.is(config.systemd.units[0].name, 'flasher-first-boot.service')
})

rendering('is a text with its placeholders filled, for the program that it is for', () => {
  const text = render({ user_data: '#!/bin/sh\necho {{name}} \\{{name}}' })
  assert.ok(text.ok)
  assert.is(text.value.cloudInit?.['user-data'], '#!/bin/sh\necho web-1 {{name}}\n')
  assert.is(text.value.ignition, null)
  const own = render({ user_data: '{"ignition":{"version":"3.4.0"},"x":"{{name}}"}' })
  assert.ok(own.ok)
  assert.is(own.value.cloudInit, null)
  assert.is(own.value.ignition, '{"ignition":{"version":"3.4.0"},"x":"web-1"}')
})

rendering('is refused where the machine lacks a value, or has a dangerous one', () => {
  const cases: readonly (readonly [object, Partial<TemplateSubject>, RegExp])[] = [
    [{ hostname: '{{name}}' }, { name: null }, /^hostname: \{\{name\}\}: the machine has no name/],
    [{ hostname: '{{name}}' }, { name: 'ä b' }, /^hostname: "ä b" is not a valid host name/],
    [{ commands: ['echo {{serial}}'] }, { serial: null }, /has not reported a serial number/],
    [
      { commands: ['echo {{serial}}'] },
      { serial: 'x"; reboot; "' },
      /characters that could change/,
    ],
    [
      { commands: ['{{label.row}}'] },
      {},
      /^commands: \{\{label\.row\}\}: the machine has no label/,
    ],
    [{ commands: ['{{label.rack}}'] }, { labels: ['rack-1', 'rack.2'] }, /more than one label/],
    [{ commands: ['{{secret.a}}'], secrets: { a: null } }, {}, /the secret has no value/],
  ]
  for (const [body, subject, words] of cases) {
    const made = render(body, subject)
    assert.not(made.ok)
    assert.match(made.ok ? '' : made.refusal, words)
  }
})

rendering('has secrets as they are, or dots for a preview', () => {
  const template = make({ commands: ['login {{secret.token}}'], secrets: { token: 'ge"heim\n' } })
  const filled = renderFirstBoot(template, SUBJECT, OPTIONS)
  const hidden = renderFirstBoot(template, SUBJECT, { ...OPTIONS, secrets: 'hidden' })
  assert.ok(filled.ok && hidden.ok)
  assert.match(filled.value.cloudInit?.['user-data'] ?? '', 'login ge\\"heim\\n')
  assert.not.match(JSON.stringify(hidden.value), 'heim')
  assert.match(JSON.stringify(hidden.value), DOTS)
})

rendering('is a YAML document of one object, whatever a person called the machine', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (name, command) => {
      const parsed = parseTemplate({ commands: [`x${command}{{name}}`] })
      if (!parsed.ok) return
      const made = renderFirstBoot(parsed.value, { ...SUBJECT, name }, OPTIONS)
      if (!made.ok) return
      const text = made.value.cloudInit?.['user-data'] ?? ''
      assert.is(JSON.parse(text.slice('#cloud-config\n'.length)).runcmd.length, 1)
    }),
  )
})

/** Mostly plain, now and then with what means something to a shell, YAML, JSON or our own placeholders. */
const VALUE = fc
  .tuple(
    fc.constantFrom('a', 'b7', 'Z', ''),
    fc.string({
      unit: fc.oneof(
        { weight: 20, arbitrary: fc.constantFrom(...'a1-_.') },
        {
          weight: 1,
          arbitrary: fc.constantFrom(
            ...' {}\\"\'\n\t:#%$`&;|<>',
            'é',
            '\u0085',
            '\u2028',
            '{{name}}',
          ),
        },
      ),
      minLength: 1,
      maxLength: 8,
    }),
  )
  .map(([first, rest]) => first + rest)

rendering('has as many lines, commands and fields as its template, whatever the values are', () => {
  let accepted = 0
  fc.assert(
    fc.property(
      fc.oneof(VALUE, fc.constant('web-1')),
      VALUE,
      VALUE,
      VALUE,
      (name, serial, label, command) => {
        const parsed = parseTemplate({
          hostname: '{{name}}',
          commands: [`x ${command.replaceAll(/[{}\\]/g, '')} {{serial}}`, 'true'],
          network: 'version: 2 # {{label.rack}}',
        })
        if (!parsed.ok) return
        const subject = { ...SUBJECT, name, serial, labels: [`rack-${label}`] }
        const made = renderFirstBoot(parsed.value, subject, OPTIONS)
        if (!made.ok) return
        accepted += 1
        const { 'user-data': userData, ...seed } = made.value.cloudInit ?? SEEDLESS
        const config = JSON.parse(userData.slice('#cloud-config\n'.length))
        assert.equal([config.hostname, config.runcmd.length], [name, 2])
        assert.match(config.runcmd[0], serial)
        assert.is(seed['meta-data'].split('\n').length, 3)
        assert.match(seed['network-config'] ?? '', /^version: 2 # [^\p{Cc}\u2028]*\n$/u)
        if (made.value.ignition !== null) JSON.parse(made.value.ignition)
      },
    ),
    { numRuns: 1000 },
  )
  assert.ok(accepted > 100, `${accepted} of 1000`)
})

const SEEDLESS = { 'user-data': '', 'meta-data': '', 'network-config': null }

const HASH = '$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7'

function renderParts(body: object): FirstBoot | string {
  const parsed = parseTemplate(body)
  if (!parsed.ok) return parsed.refusal.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('\n')
  const options = { instance: 'i-1', secrets: 'filled' } as const
  const rendered = renderFirstBoot(parsed.value, exampleOf(parsed.value), options)
  return rendered.ok ? rendered.value : rendered.refusal
}

const refusalOfParts = (body: object): string => {
  const made = renderParts(body)
  return typeof made === 'string' ? made : 'not refused'
}

const file = (path: string) => ({ path, text: '' })

const parts = suite('files and hashes of a template')

parts('both programs get them, with the values of the machine', () => {
  const made = renderParts({
    users: [{ name: 'ada', password_hash: '{{secret.ada}}' }],
    files: [{ path: '/etc/motd', mode: '0600', text: 'rack {{label.rack}} of {{name}}\n' }],
    secrets: { ada: HASH },
  })
  assert.type(made, 'object')
  if (typeof made === 'string') return
  const config = JSON.parse((made.cloudInit?.['user-data'] ?? '').replace('#cloud-config\n', ''))
  assert.equal(config.write_files, [
    { path: '/etc/motd', permissions: '0600', content: 'rack 1 of example\n' },
  ])
  assert.equal(config.users, [
    { name: 'ada', lock_passwd: false, passwd: HASH, shell: '/bin/bash' },
  ])
  const ignition = JSON.parse(made.ignition ?? '')
  assert.equal(ignition.passwd.users, [{ name: 'ada', sshAuthorizedKeys: [], passwordHash: HASH }])
  assert.equal(ignition.storage.files, [
    {
      path: '/etc/motd',
      mode: 0o600,
      overwrite: true,
      contents: { source: 'data:,rack%201%20of%20example%0A' },
    },
  ])
})

parts('a template without them is the document that it always was', () => {
  const parsed = parseTemplate({ users: [{ name: 'ada' }] })
  assert.ok(parsed.ok)
  if (!parsed.ok) return
  assert.not('files' in parsed.value)
  assert.equal(parsed.value.users, [{ name: 'ada', ssh_keys: [], sudo: false }])
})

parts('what would not work on the machine is refused', () => {
  const user = { users: [{ name: 'ada', password_hash: '{{secret.ada}}' }] }
  assert.match(
    refusalOfParts({ ...user, secrets: { ada: 'hunter2' } }),
    /password_hash: not a password hash/,
  )
  assert.match(refusalOfParts(user), /there is no such secret/)
  assert.match(
    refusalOfParts({ users: [{ name: 'ada', password_hash: HASH }] }),
    /a secret such as/,
  )
  for (const path of ['motd', '/', '/etc/../x', '/a//b', '/a\nb', '/etc/']) {
    assert.match(refusalOfParts({ files: [file(path)] }), /files\.0\.path: a path/, path)
  }
  assert.match(
    refusalOfParts({ files: [file('/a'), file('/a')] }),
    /files\.1\.path: there already is/,
  )
  assert.match(refusalOfParts({ files: [{ ...file('/a'), mode: '888' }] }), /four octal digits/)
  const long = { path: '/a', text: 'é'.repeat(20_000) }
  assert.match(refusalOfParts({ files: [long] }), /files: at most 32 KiB together/)
  assert.match(
    refusalOfParts({ user_data: '#!/bin/sh', files: [file('/a')] }),
    /cannot be combined with users/,
  )
})

parts('Ignition is not given the same path twice', () => {
  const made = renderParts({ hostname: 'web', files: [{ path: '/etc/hostname', text: 'web' }] })
  if (typeof made === 'string') throw new Error(made)
  assert.is(made.ignition, null)
  assert.match(made.reason ?? '', 'its file /etc/hostname is also made from its other fields')
})

const network = suite('the network of a template')

const host = fc.oneof(fc.ipV4(), fc.constant('10.0.{{label.rack}}.{{label.slot}}'))
const choice = fc.record({
  kind: fc.constant('static' as const),
  address: host.map((each) => `${each}/24`),
  gateway: fc.oneof(host, fc.constant('')),
  nameservers: fc.array(fc.oneof(host, fc.ipV6())),
})

network('a choice reads back as it was written', () => {
  fc.assert(fc.property(choice, (one) => assert.equal(readNetwork(renderNetwork(one)), { ...one })))
  assert.equal(readNetwork(renderNetwork({ kind: 'dhcp' })), { kind: 'dhcp' })
  assert.equal(readNetwork(null), { kind: 'image' })
})

network('any other text stays as it is, byte for byte', () => {
  const near = fc.tuple(choice, fc.nat(), fc.string()).map(([one, at, text]) => {
    const written = renderNetwork(one) ?? ''
    return written.slice(0, at % written.length) + text + written.slice(at % written.length)
  })
  fc.assert(
    fc.property(fc.oneof(near, fc.string({ minLength: 1 })), (text) =>
      assert.is(renderNetwork(readNetwork(text)), text),
    ),
  )
})

const mistakes = (address: string, gateway = '', nameservers: readonly string[] = []) =>
  findNetworkMistakes({ address, gateway, nameservers }).join(' ')

network('addresses that are none are named', () => {
  assert.is(mistakes('192.0.2.1/24', '192.0.2.254', ['2001:db8::1']), '')
  assert.is(mistakes('2001:db8::{{label.slot}}/64', 'fe80::1'), '')
  assert.is(mistakes('192.0.2.1'), 'address')
  assert.is(mistakes('192.0.2.1/33', 'x', ['y']), 'address nameservers')
  assert.is(mistakes('192.0.2.1/24', 'fe80::1'), 'gateway')
  assert.is(mistakes('192.0.2.1/24"], x: ["'), 'address')
})

const CONFIG = '#cloud-config\nhostname: a\n'
const problemOf = (content: string | Buffer) => findUserDataProblem(Buffer.from(content))

parts('all kinds that cloud-init reads', () => {
  const kinds = [
    CONFIG,
    CONFIG.replaceAll('\n', '\r\n'),
    '\n  #Cloud-Config\n',
    '#!/bin/sh\n',
    '#include\nhttp://x/\n',
    '#include-once\nhttp://x/\n',
    '#cloud-boothook\n',
    '#cloud-config-archive\n[]\n',
    '#part-handler\n',
    '## template: jinja\n#cloud-config\n',
    'Content-Type: multipart/mixed; boundary="x"\nMIME-Version: 1.0\n\n--x--\n',
    gzipSync(CONFIG),
    '',
  ]
  for (const kind of kinds) assert.is(problemOf(kind), null, String(kind))
})

parts('what it ignores', () => {
  const ignored: readonly (readonly [string | Buffer, RegExp])[] = [
    ['users:\n  - name: a\n', /^it begins without a header .* has to be #cloud-config/],
    ['# cloud-config\n', /without a header/],
    [`\ufeff${CONFIG}`, /byte order mark/],
    [Buffer.from(CONFIG, 'utf16le'), /without a header/],
    [Buffer.from(CONFIG).toString('base64'), /base64/],
    [Buffer.from('#!/bin/sh\ntrue\n').toString('base64'), /base64/],
    [gzipSync('users: []\n'), /without a header/],
    [gzipSync(CONFIG).subarray(0, 20), /gzip data is damaged/],
  ]
  for (const [content, words] of ignored) assert.match(problemOf(content) ?? '', words)
})

refusals.run()
rendering.run()
parts.run()
network.run()
