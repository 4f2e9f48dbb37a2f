import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  fileNameOf,
  isPresigned,
  parseLocation,
  renderLocationRefusal,
  renderSafeUrl,
} from '#kit/net/rules/image-location.ts'

const test = suite('location')

const parsed = (text: string) => {
  const result = parseLocation(text)
  if (!result.ok) throw new Error(renderLocationRefusal(result.refusal))
  return result.value
}
const name = (text: string) => fileNameOf(parsed(text))
const refused = (text: string) => {
  const result = parseLocation(text)
  if (result.ok) throw new Error(`${text} was taken`)
  return renderLocationRefusal(result.refusal)
}

test('tells standard input, paths and URLs apart', () => {
  assert.equal(parsed('-'), { kind: 'stdin' })
  assert.equal(parsed('disk.img'), { kind: 'file', path: 'disk.img' })
  assert.equal(parsed('./http://odd'), { kind: 'file', path: './http://odd' })
  assert.equal(parsed('HTTPS://Host/a%20b.img#part'), {
    kind: 'http',
    target: { url: 'https://host/a%20b.img', authorization: null },
  })
})

test('takes credentials out of the URL, decoded', () => {
  assert.equal(parsed('http://us%40er:p%3Ass@host/x.img'), {
    kind: 'http',
    target: {
      url: 'http://host/x.img',
      authorization: `Basic ${Buffer.from('us@er:p:ss').toString('base64')}`,
    },
  })
})

test('refuses what it cannot open, without a password in its words', () => {
  assert.is(refused(''), 'no image is named')
  assert.is(
    refused('oras://me:hidden@registry.test/a'),
    'malformed: no host in front of the first /: oras://registry.test/a',
  )
  assert.is(
    refused('s3://key:hidden@lab/a'),
    'not an object of a bucket, s3://bucket/key: s3://lab/a',
  )
  assert.match(refused('ftp://me:hidden@host/x.img'), /^ftp:\/\/ images are not supported/)
  for (const text of ['ftp://me:hidden@host/x', 'http://me:hid/den@host/x', 'http://me:hidden@/']) {
    assert.not.match(refused(text), /hid/)
  }
})

test('shows a URL without user, password, fragment, signature and token', () => {
  assert.is(renderSafeUrl('https://u:p@host:8443/x.img?a=1#f'), 'https://host:8443/x.img?a=1')
  assert.is(
    renderSafeUrl(
      'https://h/x?X-Amz-Signature=abc&X-Amz-Date=1&sig=q&access_token=t&AWSAccessKeyId=k',
    ),
    'https://h/x?X-Amz-Signature=***&X-Amz-Date=1&sig=***&access_token=***&AWSAccessKeyId=***',
  )
  assert.is(renderSafeUrl('https://h/x?design=1&monkey=2'), 'https://h/x?design=1&monkey=2')
})

test('an address with a signature is known', () => {
  assert.ok(isPresigned('https://h/x?X-Amz-Date=1&X-Amz-Signature=0'))
  assert.not(isPresigned('https://h/x?Signature=0'))
})

test('names the last part of a path', () => {
  assert.is(name('/images/debian.img.zst'), 'debian.img.zst')
  assert.is(name('https://h/images/debian%2012.img.gz?x=/y.qcow2'), 'debian 12.img.gz')
  assert.is(name('https://h/a%2Fb%1b.img'), 'b.img')
  assert.is(name('https://h/100%.img'), '100%.img')
  assert.is(name('https://h'), '')
  assert.is(name('s3://lab/a%20b?c.img'), 'a%20b?c.img')
  assert.is(name('-'), '-')
})

test.run()
