/** The power of machines as somebody with a scope controls it: of no other, by no shared outlet, and not of what has left the scope. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { scopePower } from '#server/power/scoped-power.ts'
import type { PowerBody } from '#server/power/rules/power-request.ts'
import { openPowerLab, OTHER } from '#test/support/power/power-lab.ts'
import { BMC_USER } from '#test/support/power/redfish-fake.ts'
import { MAC, macOf } from '#test/support/server/machine-fixture.ts'

const test = suite('power within a scope')

const BY = { actor: 'person:anna', ip: null } as const
const NEIGHBOUR = macOf(OTHER)
const asked = (action: PowerBody['action']): PowerBody => ({
  action,
  boot: null,
  url: null,
  even_while_writing: true,
})

/** Two machines, of which the first one alone is in the scope at the beginning. */
async function openScene(outlet: string | null) {
  const lab = await openPowerLab()
  await lab.server.state.peopleStore.add({ name: 'anna', role: 'operate', labels: null }, null)
  for (const mac of [MAC, OTHER]) await lab.set({ credential: BMC_USER, outlet }, mac)
  lab.fake.asked.length = 0
  const seen = new Set<string>([MAC])
  const control = scopePower(lab.control(), (mac) => seen.has(mac))
  const resets = () => lab.fake.asked.filter((each) => each.includes('Reset')).length
  return { lab, seen, control, resets, [Symbol.asyncDispose]: lab[Symbol.asyncDispose] }
}

test('a machine outside has no power here: nothing is shown, asked or done', async () => {
  await using scene = await openScene(null)
  const { control, lab } = scene
  const unknown = `no power control is set up for ${OTHER}`
  for (const action of ['read', 'on', 'off', 'restart'] as const) {
    assert.is(control.refuse(NEIGHBOUR, asked(action)), unknown)
    const done = await control.act(NEIGHBOUR, asked(action), BY)
    assert.is(done.ok, false, action)
  }
  assert.is(await control.refuseBoot(NEIGHBOUR, true, BY), unknown)
  assert.is(await control.boot(NEIGHBOUR, true, BY), unknown)
  assert.is(control.foresee(NEIGHBOUR, false), unknown)
  assert.equal([control.view(NEIGHBOUR), control.book.find(NEIGHBOUR)], [null, null])
  await control.actOnEach([NEIGHBOUR], asked('on'), { by: BY, pause: 0 })
  await control.bootEach([NEIGHBOUR], { by: BY, pause: 0, isRestart: true })
  assert.equal(lab.fake.asked, [])
  assert.equal(await lab.events(), [])
})

test('an outlet that also feeds a machine outside keeps its power, and does not name it', async () => {
  await using scene = await openScene('pdu-1/7')
  const { control, seen, resets } = scene
  const refusal = control.refuse(MAC, asked('off')) ?? ''
  assert.match(refusal, 'also powers machines that you may not change')
  assert.not.match(refusal, OTHER)
  assert.is((await control.act(MAC, asked('on'), BY)).ok, false)
  assert.is(await control.boot(MAC, false, BY), refusal)
  await control.bootEach([MAC], { by: BY, pause: 0, isRestart: false })
  assert.is(resets(), 0)
  assert.is((await control.act(MAC, asked('read'), BY)).ok, true, 'reading changes nothing')
  assert.equal(control.view(MAC)?.shares_outlet_with, [])
  assert.equal([control.book.listSharing(MAC), control.listWriting(MAC)], [[], []])
  seen.add(OTHER)
  assert.equal(control.view(MAC)?.shares_outlet_with, [OTHER])
  assert.is((await control.act(MAC, asked('on'), BY)).ok, true)
  assert.is(resets(), 1)
})

test('what leaves the scope while others have their turn is left as it is, and that is on record', async () => {
  await using scene = await openScene(null)
  const { control, seen, resets, lab } = scene
  seen.add(OTHER)
  const failures: string[] = []
  await control.bootEach([MAC, NEIGHBOUR], {
    by: BY,
    pause: 0,
    isRestart: false,
    async awaitReady(mac) {
      if (mac === OTHER) seen.delete(OTHER)
    },
    onFailure: (mac, why) => void failures.push(`${mac}: ${why}`),
  })
  const refused = `${OTHER}: no power control is set up for ${OTHER}`
  assert.equal(failures, [refused])
  assert.is(resets(), 1)
  assert.equal(
    (await lab.events()).map(({ summary }) => summary).filter((each) => each.startsWith(OTHER)),
    [refused],
  )
  // The same by a plain request for many.
  seen.add(OTHER)
  const turns = control.actOnEach([MAC, NEIGHBOUR], asked('off'), { by: BY, pause: 100 })
  seen.delete(OTHER)
  await turns
  assert.is(resets(), 2)
})

test.run()
