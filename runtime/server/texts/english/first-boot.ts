/** First-boot templates: their list, the page of each, and the card on a machine's page. */
export const FIRST_BOOT = {
  title: 'First-boot templates',
  one: 'First-boot template {name}',
  list: 'Templates',
  introduction:
    'A template sets up a machine at the first boot after a flash, through cloud-init or Ignition. It is written with the image, before the disk can boot. Placeholders stand for the values of each machine: {name}, {mac}, {serial}, {label} (12 for the label rack-12) and {secret}.',
  empty: {
    title: 'No templates',
    text: 'Create one below, then assign it on the page of a machine or to a selection of machines.',
  },
  machines: { one: '{count} machine', other: '{count} machines' },
  saved: 'saved {time}',
  isSaved: 'Saved. Machines get it with their next flash.',
  create: 'New template',
  createButton: 'Create template',
  saveButton: 'Save',
  form: {
    name: 'Name',
    nameHint: 'Letters, digits and . _ - of your choice.',
    hostname: 'Host name',
    hostnameHint: 'A MAC address is written with hyphens here.',
    users: 'Users',
    usersHint:
      'A user per line, with sudo behind the name for administrators; their SSH keys in the lines below. Passwords are locked.',
    packages: 'Packages',
    packagesHint:
      'Separate with spaces. They need a network and a package source; Ignition cannot install any.',
    commands: 'Commands',
    commandsHint: 'One per line, run as root at the end of the first boot.',
    network: 'Network',
    networkHint:
      'Network configuration of cloud-init, version 1 or 2. Leave empty for DHCP as the image has it.',
    userData: 'User data',
    userDataHint:
      'A whole text instead of users, packages and commands: #cloud-config, a script, or an Ignition configuration (JSON, version 3). Write {braces} for braces that are not a placeholder.',
    secrets: 'Secrets',
    secretsHint:
      'One per line: name=value. Use {placeholder} in the texts above. Values are shown as dots here and appear in no event, export or log. Machines get them only with {setting}.',
  },
  errors: {
    name: 'Enter a name of letters, digits and . _ - that begins with a letter or a digit.',
    taken: 'There already is a template {name}.',
    refused: 'Not saved: {reason}.',
    tooMany: 'Not saved: there are {count} templates already.',
    missing: 'no such first-boot template',
  },
  removal: {
    title: 'Delete template',
    inUse: {
      one: 'In use by {count} machine. Assign it another template first.',
      other: 'In use by {count} machines. Assign them another template first.',
    },
    button: 'Delete template',
    question: 'Delete the template {name}?',
    consequence: 'It is gone for good. Machines that were set up with it stay as they are.',
  },
  tokens: {
    title: 'Secrets and boot tokens',
    required: 'Machines must show a boot token, so templates with secrets can be used.',
    missing:
      'Templates with secrets are not given to machines: boot tokens are not required. Set [pxe] tokens to require on the Settings page.',
    limits:
      'A boot token proves that this server booted the machine, and is void when the machine gets something else to do. It does not stop anyone on the boot network from requesting the boot script in the name of a machine that is to be flashed, and then its template. It does not encrypt the transfer either, unless machines use the server by HTTPS. Put into templates what such a person may know for a short time: keys that register a machine once rather than passwords of people.',
  },
  card: {
    title: 'First boot',
    all: 'Templates',
    template: 'Template',
    none: 'None',
    hint: 'Written with each flash that this server starts; a flash by hand in the wizard leaves it out.',
    assign: 'Assign',
    preview: 'Preview for this machine',
    removed:
      'The template {name} no longer exists. This machine is not flashed until another one or none is assigned.',
    refused:
      'The template {template} does not fit this machine: {reason}. It is not flashed until it does.',
    needsTokens:
      'The template has secrets, and this machine is not flashed without {setting}: nothing would show that it is the one to get them.',
    noIgnition: 'Not for images that use Ignition: {reason}.',
    noCall: 'It cannot tell the server that the new system has booted. {reason}',
  },
} as const
