/** An address of a BMC has one name, however it is spelled. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BmcSchema, queueOf } from '#fleet/power/rules/bmc.ts'

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

test.run()
