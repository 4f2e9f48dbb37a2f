import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideLiveSource, type LiveFacts } from '#build/demo/live-source.ts'

const SITE = { url: 'https://example.org', repository: 'owner/name', tag: 'latest' }
const NOTHING: LiveFacts = { built: null, kept: null, site: null, isRoot: false, obstacle: null }

const decide = (facts: Partial<LiveFacts>) => decideLiveSource({ ...NOTHING, ...facts })

const test = suite('where the live system comes from')

test('dist/, an earlier run, a site, a build: in this order', () => {
  const all = { built: '2.0.0', kept: '1.0.0', site: SITE, isRoot: true }
  assert.equal(decide(all), { from: 'dist', version: '2.0.0' })
  assert.equal(decide({ ...all, built: null }), { from: 'state', version: '1.0.0' })
  assert.equal(decide({ ...all, built: null, kept: null }), { from: 'site', site: SITE })
  assert.equal(decide({ isRoot: true }), { from: 'build' })
})

test('who is not root gets the one command; a host that cannot build, the settings', () => {
  assert.equal(decide({}), {
    from: 'nowhere',
    advice:
      'Build a live system, once, in some five minutes: sudo npx pnpm build:images netboot-pc',
  })
  const elsewhere = decide({ isRoot: true, obstacle: 'this is darwin' })
  assert.is(elsewhere.from, 'nowhere')
  assert.match('advice' in elsewhere ? elsewhere.advice : '', /FLASHER_RELEASES_BASE_URL.*darwin/)
})

test.run()
