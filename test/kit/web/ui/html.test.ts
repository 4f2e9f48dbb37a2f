import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  middle,
  renderBytes,
  renderDiskBytes,
  renderMemoryBytes,
  shorten,
} from '#kit/web/ui/elements.ts'
import { address, attributes, fillHtml, html } from '#kit/web/ui/html.ts'
import { localPath } from '#kit/web/answers/checked.ts'
import { renderAge, renderExact, renderTime } from '#kit/web/ui/times.ts'

const test = suite('html')

test('a text of a table takes HTML for its placeholders, and is escaped itself', () => {
  const filled = fillHtml('<{name}> is set by {by}', { name: 'a<b', by: html`<code>X</code>` })
  assert.is(String(filled), '&lt;a&lt;b&gt; is set by <code>X</code>')
})

test('texts are escaped, HTML is not, nothing leaves nothing', () => {
  const evil = `<b title="x">'&`
  assert.is(String(html`<p>${evil}</p>`), '<p>&lt;b title=&quot;x&quot;&gt;&#39;&amp;</p>')
  assert.is(String(html`${[html`<i>1</i>`, [2, null, undefined, false, true]]}`), '<i>1</i>2')
})

test('attributes: true is a name alone, null and false are none', () => {
  const made = attributes({ id: 'a"b', hidden: true, open: false, title: null, value: 0 })
  assert.is(String(made), ' id="a&quot;b" hidden value="0"')
})

test('addresses leave out what is empty', () => {
  assert.is(address('/ui', { q: 'a b&c', page: null, sort: '' }), '/ui?q=a+b%26c')
  assert.is(address('/ui', {}), '/ui')
})

for (const [wanted, got] of [
  ['/ui/machines?q=a#b', '/ui/machines?q=a#b'],
  ['/ui', '/ui'],
  ['//evil.example/ui/', '/ui/dashboard'],
  ['/\\evil.example/ui/', '/ui/dashboard'],
  ['https://evil.example/ui/', '/ui/dashboard'],
  ['/ui/../admin', '/ui/dashboard'],
  ['/uix', '/ui/dashboard'],
  ['javascript:alert(1)', '/ui/dashboard'],
  ['', '/ui/dashboard'],
] as const) {
  test(`a form goes back to ${got} when it says "${wanted}"`, () => {
    assert.is(localPath(wanted), got)
  })
}

test('times: how long ago, and exactly in the zone of the pages', () => {
  const now = new Date('2026-11-21T12:00:00Z')
  const ages = [0, 42, 60, 3599, 7200, 86_400, 2 * 86_400, 40 * 86_400].map((seconds) =>
    renderAge(new Date(now.getTime() - seconds * 1000), now),
  )
  assert.equal(ages, [
    'now',
    '42 s ago',
    '1 min ago',
    '59 min ago',
    '2 h ago',
    '24 h ago',
    '2 d ago',
    '40 d ago',
  ])
  assert.is(renderAge(new Date('2026-11-21T12:05:00Z'), now), 'in 5 min')
  assert.is(renderExact(now, 'Europe/Berlin'), '2026-11-21 13:00:00 Europe/Berlin')
  assert.match(
    String(renderTime('2026-11-21T11:59:00Z', { now, zone: 'UTC' })),
    /<time[\s\S]*1 min ago/,
  )
  assert.match(String(renderTime(null, { now, zone: 'UTC' }, 'never')), /never/)
  assert.is(String(renderTime('no time', { now, zone: 'UTC' })), '')
})

test('sizes are decimal, with the binary ones and the bytes on hover', () => {
  const made = String(renderBytes(500_107_862_016))
  assert.match(made, />500 GB</)
  assert.match(made, /title="465\.76 GiB \(500107862016 bytes\)"/)
  assert.match(String(renderDiskBytes(1_000_204_886_016)), />1 TB</)
  assert.match(String(renderMemoryBytes(2 ** 34)), />16 GiB</)
})

test('long names keep both ends', () => {
  assert.is(shorten('debian-13-generic-amd64.img.zst', 16), 'debian-1…img.zst')
  assert.is(shorten('debian-13-generic-amd64.img.zst', 16).length, 16)
  assert.is(shorten('short', 16), 'short')
  assert.match(
    String(middle('debian-13.img.zst')),
    /<span>debian-13<\/span><span>\.img\.zst<\/span>/,
  )
})

test.run()
