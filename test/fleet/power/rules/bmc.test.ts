/** An address of a BMC has one name, however it is spelled. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BmcSchema, parseBmcCsv, queueOf } from '#fleet/power/rules/bmc.ts'
import { listSpellings } from '#kit/net/rules/mac.ts'
import { macOf } from '#test/support/power/acting.ts'

const test = suite('the queue of a BMC')

const keyOf = (way: string, address: string) => queueOf(BmcSchema.parse({ way, address }))

const SAME = {
  redfish: [
    ['10.0.0.1', '10.0.0.1:443', 'https://10.0.0.1', 'HTTPS://10.0.0.1/', 'https://10.0.0.1:443/'],
    ['bmc-7.lab', 'BMC-7.lab', 'https://bmc-7.LAB', 'https://bmc-7.lab./'],
    ['[fd00::1]', '[FD00:0:0:0:0:0:0:1]', 'https://[fd00::0:1]:443'],
    ['http://10.0.0.1', 'http://10.0.0.1:80/'],
    ['10.0.0.1:8443'],
  ],
  ipmi: [
    ['10.0.0.1', '10.0.0.1:623'],
    ['bmc-7.lab', 'BMC-7.lab:623'],
    ['[fd00::1]:623', '[fd00:0::1]'],
    ['10.0.0.1:6230'],
    ['10.0.0.1:443'],
  ],
}

test('other spellings are the same BMC, other ports and schemes are not', () => {
  const keys = Object.entries(SAME).flatMap(([way, groups]) =>
    groups.map((group) => {
      const found = new Set(group.map((address) => keyOf(way, address)))
      assert.is(found.size, 1, [...found].join(' '))
      return [...found].join('')
    }),
  )
  assert.is(new Set(keys).size, keys.length)
})

test('takes every spelling of a MAC, and a guarded cell without its quote', () => {
  const mac = macOf('52:54:00:00:00:0a')
  for (const spelling of [...listSpellings(mac), '5254.0000.000A', ' 52-54-00-00-00-0A ']) {
    const list = parseBmcCsv(
      `mac,way,address,user,outlet\n${spelling},redfish,10.0.0.9,'@admin,'-pdu/7\n`,
    )
    const change = list.ok ? list.value.get(mac) : undefined
    assert.is(change?.credential?.user, '@admin', spelling)
    assert.is(change?.bmc?.outlet, '-pdu/7', spelling)
  }
  const twice = parseBmcCsv(
    `mac,way,address\n${listSpellings(mac)
      .map((each) => `${each},ipmi,10.0.0.9\n`)
      .join('')}`,
  )
  assert.equal(twice, {
    ok: false,
    refusal: [3, 4, 5].map((line) => `Line ${line}: this MAC is listed twice`),
  })
})

test.run()
