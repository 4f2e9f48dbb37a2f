/** The other servers of a site, as scripts name them. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createOthers } from '#fleet/boot/rules/boot-decision.ts'
import { listGrubServers } from '#fleet/boot/rules/grub-script.ts'

const test = suite('other servers')

const LIST = ['http://10.0.0.1', 'http://10.0.0.2:8080', 'https://three.example/flash']

test('the list may name the server itself, with or without the port that its scheme implies', () => {
  const listOthers = createOthers(() => LIST)
  assert.equal(listOthers('http://10.0.0.1:80'), LIST.slice(1))
  assert.equal(listOthers('http://10.0.0.2:8080'), [LIST[0], LIST[2]])
  assert.equal(listOthers('https://three.example/flash'), LIST.slice(0, 2))
  assert.equal(listOthers('https://three.example'), LIST)
  assert.equal(createOthers(() => [])('http://10.0.0.1'), [])
})

test('GRUB gets those that it can reach', () => {
  assert.equal(listGrubServers(LIST), ['10.0.0.1', '10.0.0.2:8080'])
})

test.run()
