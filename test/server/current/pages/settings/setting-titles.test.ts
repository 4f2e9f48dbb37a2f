import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listSettings } from '../../../../../runtime/kit/config/rules/setting.ts'
import {
  SETTING_GROUPS,
  SETTING_TITLES,
} from '../../../../../runtime/server/current/pages/settings/setting-titles.ts'
import { SETTINGS } from '../../../../../runtime/server/current/rules/settings.ts'

const test = suite('setting titles')
const names = listSettings(SETTINGS).map(({ section, key }) => `${section}.${key}`)

test('every setting is in one group, and no group or topic is empty', () => {
  const topics = SETTING_GROUPS.flatMap((group) => group.topics)
  assert.equal(topics.flatMap((topic) => [...topic.names]).toSorted(), names.toSorted())
  assert.ok(topics.every((topic) => topic.names.length > 0))
})

test('the groups that the specification names are there', () => {
  const titles = SETTING_GROUPS.map(({ title }) => title)
  assert.equal(titles, ['Identity', 'Network', 'Storage'])
})

test('no two settings have the same title', () => {
  assert.is(new Set(SETTING_TITLES.values()).size, names.length)
})

test.run()
