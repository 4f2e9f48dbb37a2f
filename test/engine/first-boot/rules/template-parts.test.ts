/** Files, hashes of passwords and the choice of a network: what is refused, and what machines get of them. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import * as fc from 'fast-check'
import { exampleOf } from '#engine/first-boot/rules/example-subject.ts'
import {
  findNetworkMistakes,
  readNetwork,
  renderNetwork,
  parseTemplate,
} from '#engine/first-boot/rules/template.ts'
import { renderFirstBoot, type FirstBoot } from '#engine/first-boot/rules/seed.ts'

const HASH = '$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7'

function render(body: object): FirstBoot | string {
  const parsed = parseTemplate(body)
  if (!parsed.ok) return parsed.refusal.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('\n')
  const options = { instance: 'i-1', secrets: 'filled' } as const
  const rendered = renderFirstBoot(parsed.value, exampleOf(parsed.value), options)
  return rendered.ok ? rendered.value : rendered.refusal
}

const refusalOf = (body: object): string => {
  const made = render(body)
  return typeof made === 'string' ? made : 'not refused'
}

const file = (path: string) => ({ path, text: '' })

const parts = suite('files and hashes of a template')

parts('both programs get them, with the values of the machine', () => {
  const made = render({
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
  assert.match(refusalOf({ ...user, secrets: { ada: 'hunter2' } }), /password_hash: not the hash/)
  assert.match(refusalOf(user), /there is no such secret/)
  assert.match(refusalOf({ users: [{ name: 'ada', password_hash: HASH }] }), /a secret such as/)
  for (const path of ['motd', '/', '/etc/../x', '/a//b', '/a\nb', '/etc/']) {
    assert.match(refusalOf({ files: [file(path)] }), /files\.0\.path: a path/, path)
  }
  assert.match(refusalOf({ files: [file('/a'), file('/a')] }), /files\.1\.path: there already is/)
  assert.match(refusalOf({ files: [{ ...file('/a'), mode: '888' }] }), /four octal digits/)
  const long = { path: '/a', text: 'é'.repeat(20_000) }
  assert.match(refusalOf({ files: [long] }), /files: at most 32 KiB together/)
  assert.match(refusalOf({ user_data: '#!/bin/sh', files: [file('/a')] }), /replaces users/)
})

parts('Ignition is not given the same path twice', () => {
  const made = render({ hostname: 'web', files: [{ path: '/etc/hostname', text: 'web' }] })
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

parts.run()
network.run()
