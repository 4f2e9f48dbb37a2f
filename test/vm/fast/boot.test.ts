/** The Debian image that the tests flash is one that boots. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { bootToLogin } from '#test/support/vm/boot.ts'
import { findImageObstacle, openDebianImage } from '#test/support/disk/debian-image.ts'

const test = suite('boot')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

run('Debian asks for a login on the serial line', async () => {
  const image = await openDebianImage()
  assert.match(await bootToLogin(await image.file('img')), /flasher-test login: $/)
})

test.run()
