/** The groups and headings under which settings pages list the settings, in their order and in English. */

/** "Configuration page" of the specification names the groups. */
export const SETTING_GROUPS = {
  identity: {
    title: 'Identity',
    topics: { login: 'Logging in', monitoring: 'Times, logs and monitoring' },
  },
  network: {
    title: 'Network',
    topics: {
      listening: 'Where the server listens',
      proxy: 'Behind a proxy or a name',
      upstream: 'Images and releases',
      buckets: 'Images in buckets',
      flashing: 'Flashing',
      power: 'Power of machines',
      notifications: 'Notifications',
      boot: 'Network boot and discovery',
      workflows: 'Workflows',
    },
  },
  storage: {
    title: 'Storage',
    topics: {
      folders: 'Folders',
      database: 'Database of several servers',
      backups: 'Backups',
      retention: 'What is kept, and for how long',
      limits: 'Limits',
      cache: 'Image cache on this server',
    },
  },
} as const

type Groups = typeof SETTING_GROUPS

export type SettingTopic = {
  [Group in keyof Groups]: keyof Groups[Group]['topics']
}[keyof Groups]
