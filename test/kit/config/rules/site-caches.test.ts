/** What `sources.caches` accepts: an address, then networks and labels. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { siteCaches } from '#kit/config/rules/setting-kinds.ts'

const test = suite('caches of a site')
const accepts = (text: string) => siteCaches.schema.safeParse(siteCaches.fromText(text)).success

for (const text of [
  'http://10.1.0.5:8081',
  'https://cache.example/images 10.1.0.0/24',
  'http://10.1.0.5:8081 10.1.0.0/24; fd00::/8;10.9.9.9',
  'http://10.1.0.5:8081 rack a; Site-B_2.1',
  'http://10.1.0.5:8081 rack a\nhttp://10.1.0.6:8081',
]) {
  test(`accepts ${JSON.stringify(text)}`, () => assert.ok(accepts(text)))
}

for (const text of [
  'rack a',
  'ftp://10.1.0.5',
  'http://user:word@10.1.0.5',
  'http://10.1.0.5?x=1',
  'http://10.1.0.5:8081 10.1.0.0/33',
  'http://10.1.0.5:8081 rack a;;rack b',
  'http://10.1.0.5:8081 <script>',
]) {
  test(`refuses ${JSON.stringify(text)}`, () => assert.not(accepts(text)))
}

test('a field has one a line, as a file has one an entry', () => {
  const two = ['http://a:1 10.0.0.0/8; rack a', 'http://b:1']
  assert.is(siteCaches.toField?.(two), two.join('\n'))
  assert.equal(siteCaches.fromText(two.join('\n')), two)
})

test.run()
