import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createProof, nextProof } from '../../../../../runtime/fleet/proof/rules/proof.ts'
import { renderProof } from '../../../../../runtime/server/current/pages/runs/first-boot-card.ts'

const test = suite('the card of a first boot')

const AT = '2026-11-26T08:00:00.000Z'
const clock = { now: new Date(AT), zone: 'UTC' }
const proof = createProof(AT, 1800, AT)

test('it says what was seen, and what was seen instead', () => {
  assert.is(renderProof(null, clock), null)
  assert.match(String(renderProof(proof, clock)), 'Waiting until the new system has booted')
  const booted = nextProof(proof, { kind: 'call', issued: AT }, '2026-11-26T08:01:35.000Z')
  const shown = String(renderProof(booted, clock))
  assert.match(shown, 'The new system has booted')
  assert.match(shown, 'a call of its one-time address')
  const lost = String(renderProof(nextProof(proof, { kind: 'limit' }, AT), clock))
  assert.match(lost, 'Nothing was seen of the machine.')
})

test.run()
