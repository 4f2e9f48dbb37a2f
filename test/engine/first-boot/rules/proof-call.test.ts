import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addProofCall, findCallObstacle } from '#engine/first-boot/rules/proof-call.ts'
import { renderFirstBoot } from '#engine/first-boot/rules/seed.ts'
import { parseTemplate } from '#engine/first-boot/rules/template.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'

const test = suite('the call of a new system')

const URL = `http://192.0.2.1:8080/pxe/${MAC}/booted/abc.def`

function render(fields: Record<string, unknown>) {
  const template = parseTemplate(fields)
  assert.ok(template.ok)
  const subject = { mac: MAC, name: 'web', labels: [], serial: null }
  const made = renderFirstBoot(template.value, subject, { instance: 'i', secrets: 'filled' })
  assert.ok(made.ok)
  return made.value
}
const units = (text: string | null) =>
  JSON.parse(text ?? '').systemd.units.map(({ name }: { name: string }) => name)
const ignitionOf = (list: readonly unknown[]) =>
  JSON.stringify({ ignition: { version: '3.3.0' }, systemd: { units: list } })

test('user-data stays as it is, a script too; vendor-data has the call', () => {
  for (const user_data of ['#!/bin/sh\necho hello\n', '#cloud-config\npackages: [htop]\n']) {
    const { cloudInit } = addProofCall(render({ user_data }), URL)
    assert.is(cloudInit?.['user-data'], user_data)
    const [head, ...json] = (cloudInit?.['vendor-data'] ?? '').split('\n')
    assert.is(head, '#cloud-config')
    assert.is(JSON.parse(json.join('\n')).phone_home.url, URL)
  }
})

test('Ignition gets one more unit, beside those of the template', () => {
  const made = addProofCall(render({ commands: ['true'] }), URL)
  assert.equal(units(made.ignition), ['flasher-first-boot.service', 'flasher-booted.service'])
  const own = addProofCall(render({ user_data: ignitionOf([{ name: 'own.service' }]) }), URL)
  assert.equal(units(own.ignition), ['own.service', 'flasher-booted.service'])
  assert.match(own.ignition ?? '', `--request POST`)
  assert.match(own.ignition ?? '', URL)
  assert.is(own.cloudInit, null)
})

test('what would take the place of the call is named, and stays as it is', () => {
  const rows = [
    { user_data: '#cloud-config\nphone_home:\n  url: http://own/\n' },
    { user_data: '#cloud-config\n{"a": 1,\n "phone_home": {}}\n' },
    { user_data: '#cloud-config\nvendor_data: {enabled: false}\n' },
    { user_data: ignitionOf([{ name: 'flasher-booted.service' }]) },
  ]
  for (const row of rows) {
    const made = render(row)
    assert.match(findCallObstacle(made) ?? '', 'already has a', JSON.stringify(row))
    assert.equal(addProofCall(made, URL), made)
  }
  assert.is(findCallObstacle(render({ hostname: 'web' })), null)
})

test('a percent sign in the address is none of systemd', () => {
  const made = addProofCall(render({ hostname: 'web' }), 'http://[fe80::1%25eth0]/x')
  assert.match(made.ignition ?? '', 'fe80::1%%25eth0')
})

test.run()
