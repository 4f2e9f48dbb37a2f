/** Cells of a list of BMCs are read as those of a file of machines. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseBmcCsv } from '#fleet/power/rules/bmc.ts'
import { listSpellings } from '#kit/net/rules/mac.ts'
import { macOf } from '#test/support/power/acting.ts'

const test = suite('a list of BMCs')

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
    refusal: [3, 4, 5].map((line) => `Line ${line}: this MAC comes twice`),
  })
})

test.run()
