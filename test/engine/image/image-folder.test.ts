import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { joinImagePath, resolveImageRoot } from '#engine/image/image-folder.ts'

const test = suite('image')

test('the image root: flag, environment, default; empty counts as not given', () => {
  const env = { FLASHER_IMAGE_ROOT: '/env' }
  assert.is(resolveImageRoot('flag', env), 'flag')
  assert.is(resolveImageRoot(undefined, env), '/env')
  assert.is(resolveImageRoot('', env), '/env')
  assert.is(resolveImageRoot(null, { FLASHER_IMAGE_ROOT: '' }), '/var/lib/flasher/images')
  assert.is(resolveImageRoot(undefined, {}), '/var/lib/flasher/images')
})

test('paths stay relative to the root as it was given', () => {
  const rows = [
    ['img', 'img/a'],
    ['img/', 'img/a'],
    ['./img', 'img/a'],
    ['.', 'a'],
    ['/', '/a'],
    ['/x//y', '/x/y/a'],
    // Not shortened: with a link on the way it is another folder.
    ['../x/../y', '../x/../y/a'],
  ] as const
  for (const [root, path] of rows) assert.is(joinImagePath(root, 'a'), path)
})

test.run()
