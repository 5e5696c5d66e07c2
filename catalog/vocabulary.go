package catalog

// This file is data: what words of the trade mean to a search. [lexicon] reads it.
// Words that belong together are written with an underscore between them.

// stopWords say nothing about which tool is meant. Natural questions are full of
// them, and without this list they favour long descriptions.
var stopWords = wordSet(`
	a about all also am an and any anybody anyone anything are as at be because been before being but by can
	cannot could did do does doing either else ever every everybody everyone everything for from going gonna
	had has have having he hello her here hey hi him his how however i if in instead into is it its itself
	just let lets like maybe me might mine must my myself no nor not now of off ok okay on onto or our ours
	out own per please pls shall she should since so some somebody somehow someone something still such than
	that the their them then there these they this those to too until up upon us very via wanna want wants was
	we were what when where whether which while who whom whose why will with within without would yet you your
	yours`)

// faintWords say a little: tools use them in a narrow sense, questions in any.
var faintWords = wordSet(`
	actually after again already always back between came certain come comes different done during easily etc
	existing few getting give given gives giving go goes good got great help keep keeps kept kind later lot
	made make makes many more most much need needs next often old older one ones only other others over
	particular possible put puts quickly quite rather really right same several simple single specific take
	taken takes taking tell thank thanks thing things three through today tomorrow tool tools try trying two
	use used useful uses using various way ways well wish work working works yesterday`)

// brands are written with capitals inside, but they are one word each.
var brands = wordSet(`
	airbnb airtable appsflyer appstore bigcommerce bigquery bitbucket blogspot browserbase browserstack
	chatgpt circleci clickhouse clickup cloudflare cloudwatch cockroachdb codepen codesandbox coinbase datadog
	devops digitalocean docusign doordash dropbox duckdb duckduckgo dynamodb ebay eslint facetime fastapi
	firefox freshdesk fullstory github gitlab gitops godaddy graphql hubspot icloud imessage influxdb
	instagram ios iphone javascript jetbrains jsonpath kubectl launchdarkly linkedin linux livekit macos
	magento mailchimp mariadb mongodb mysql netsuite nosql onedrive onenote openai openapi opensearch
	pagerduty paypal planetscale playstation postgresql powerpoint producthunt quickbooks rabbitmq sendgrid
	servicenow sharepoint shopify signalr snapchat soundcloud sqlite stackoverflow superset surveymonkey
	taskrabbit testrail tiktok todoist tripadvisor typescript vmware vscode whatsapp woocommerce wordpress
	youtube zendesk`)

// sameAs lists spellings of one thing, the one that counts first. They meet in
// names, descriptions and queries alike.
const sameAs = `
	# code and delivery
	pull_request pr merge_request mr
	continuous_integration ci
	continuous_delivery cd
	repository repo
	work_item workitem
	read_me readme
	javascript js
	typescript ts
	regular_expression regex regexp
	package pkg
	library lib
	dependency dep
	specification spec

	# machines
	kubernetes k8s kube
	virtual_machine vm
	operating_system os
	environment env
	configuration config cfg conf
	variable var
	application app
	database db data_base
	postgresql postgres pg
	mongodb mongo
	directory dir folder
	administrator admin
	authentication auth authn
	authorization authz
	certificate cert
	credential cred
	two_factor 2fa mfa multi_factor
	single_sign sso
	identifier id
	parameter param
	argument arg
	attribute attr
	temporary temp tmp
	cpu processor
	memory mem
	synchronize sync
	cloud_formation cfn
	key_vault keyvault
	data_source datasource
	web_hook webhook
	end_point endpoint
	time_zone timezone tz
	time_stamp timestamp
	back_up backup
	health_check healthcheck
	user_name username
	file_name filename
	work_flow workflow
	work_space workspace
	check_list checklist
	home_page homepage
	web_site website
	web_page webpage
	dead_line deadline

	# people and messages
	organization org organisation
	message msg
	sms text_message
	email mail e_mail
	direct_message dm
	information info
	telephone phone
	voice_mail voicemail
	birthday bday

	# office
	spreadsheet xlsx excel
	presentation ppt pptx powerpoint slide_deck
	document doc
	to_do todo
	statistics stats
	business_intelligence bi
	customer_relationship crm
	point_interest poi

	# pictures and screens
	image img picture pic
	photo photograph
	screenshot screen_shot screen_capture screen_grab
	user_interface ui
	coordinate coord gps lat_long latlong
	drop_down dropdown
	pop_up popup
	color colour
	center centre
	favorite favourite
	license licence
	gray grey
	catalog catalogue
	program programme
	analyze analyse
	summarize summarise
	customize customise
	visualize visualise
	optimize optimise
	categorize categorise
	canceled cancelled
	labeled labelled

	# irregular forms
	break broke broken
	build built
	buy bought
	child children
	choose chose chosen
	draw drew drawn
	find found
	forget forgot forgotten
	freeze froze frozen
	hide hid hidden
	hold held
	index indices
	lose lost
	matrix matrices
	meet met
	pay paid
	run ran
	sell sold
	send sent
	show shown
	speak spoke spoken
	spend spent
	throw threw thrown
	vertex vertices
	wake woke
	write wrote written
`

// actLists has what tools do. A question's first act says which of two tools for the
// same thing is meant; of the words it has, it still says the least.
const actLists = `
	create: create add append new insert make generate build compose draft register provision
	delete: delete remove drop erase destroy purge clear unassign uninstall discard trash
	update: update edit modify change patch rename set adjust alter
	read: get fetch read retrieve show view list browse enumerate find search query lookup look describe inspect check display count
	send: send reply forward notify
	start: run execute invoke launch start trigger resume
	stop: stop cancel kill terminate abort pause
`

// forms lists words of one root that stem leaves apart.
const forms = `
	administrator administration
	analyze analysis analytics
	approve approval approver
	archive archival
	assign assignee
	attend attendee attendance
	authorize authorization
	automate automatic
	calculate calculator
	choose choice
	collaborate collaborator
	compare comparison
	compute computation
	configure configuration
	connect connector
	contribute contributor
	convert conversion converter
	decide decision
	define definition
	deliver delivery
	depend dependency
	describe description
	develop developer
	differ difference diff
	discover discovery
	edit editor
	embed embedding
	employ employee employer
	execute executor
	expire expiry expiration
	fail failure
	finance financial
	follow follower
	generate generator
	identify identity identification
	infer inference
	initialize initialization
	inspect inspector
	install installation installer
	invite invitation invitee
	maintain maintenance
	manage manager
	modify modification
	notify notification
	observe observation
	optimize optimization
	organize organizer
	owner ownership
	participate participant
	pay payment payer
	perform performance
	permit permission
	photo photography
	plan planner
	play playback player
	prefer preference
	present presentation
	prioritize priority
	produce product
	profile profiler
	receive receipt receiver recipient
	recommend recommendation
	recover recovery
	recur recurrence
	refer reference referrer
	register registration registry
	relate relationship
	remind reminder
	report reporter
	represent representation
	reserve reservation
	resolve resolution resolver
	respond response responder
	review reviewer
	scan scanner
	schedule scheduler
	scrape scraper
	secure security
	select selector
	sell sale seller
	send sender
	serve service
	ship shipment
	sign signature
	speak speech speaker
	statistics statistical
	store storage
	subscribe subscription subscriber
	summarize summary summarization summarizer
	synchronize synchronization
	test tester
	track tracker
	transcribe transcript transcriber
	translate translator
	use usage
	validate validator valid
	vary variation variant
	verify verification
	version versioning
	visualize visualization visual
	write writer
`

// related lists words that often stand for each other in what people ask for,
// though they are not the same. Only queries are widened by them, at a part of
// the weight: the word that was used counts most.
const related = `
	# acts
	create add append new insert make generate register
	delete remove drop erase destroy
	update edit modify change patch alter
	get fetch read retrieve show view
	list browse enumerate
	search find query lookup
	send post publish deliver
	run execute invoke launch start trigger
	stop cancel kill terminate abort end
	pause suspend hold
	resume continue
	restart reboot
	enable activate
	disable deactivate
	copy duplicate clone
	move transfer migrate
	rename move
	convert transform
	export download save dump
	import upload load
	upload attach
	merge combine join
	split divide separate
	compare difference
	sort order rank
	count total number
	check verify validate test inspect
	approve review accept
	reject decline deny dismiss
	undo revert rollback restore reset
	retry rerun redo
	archive close
	restore recover unarchive
	resolve fix close
	lock protect
	unlock unprotect
	share permission access
	assign assignee owner responsible
	subscribe follow watch
	unsubscribe unfollow
	notify alert
	monitor watch track
	schedule cron recurring
	invite add
	install setup deploy
	uninstall remove
	upgrade update
	rotate regenerate renew
	clean prune purge clear cleanup
	compress zip gzip archive
	extract parse scrape
	scrape crawl
	describe detail inspect
	explain describe
	analyze insight
	diagnose troubleshoot debug
	book reserve
	remember recall memory note
	complete done finish
	estimate point
	wait poll
	connect attach
	disconnect detach
	enter type fill input

	# planning and tickets
	issue ticket bug task story work_item
	bug defect error
	todo task checklist subtask
	subtask child
	sprint cycle iteration
	milestone deadline
	epic initiative objective goal
	roadmap plan
	board kanban scrum
	backlog queue
	status state
	priority urgency severity
	label tag category
	comment note reply
	discussion thread conversation comment
	worklog time_tracking
	attachment file
	project workspace
	feedback request need
	link relation dependency

	# code and delivery
	branch ref
	commit change revision
	history log changelog version
	blame author annotate
	diff patch change
	pull_request review
	repository project
	pipeline workflow build continuous_integration job
	job task
	artifact build
	deploy release rollout
	release version changelog
	package library module dependency
	function lambda serverless
	script code
	snippet gist
	lint validate eslint
	vulnerability security cve advisory
	feature_flag flag toggle
	experiment variation
	error exception crash failure fault
	fail break
	flaky unstable
	endpoint api route
	mock stub fake
	sdk library
	merge_conflict conflict

	# machines and operations
	kubernetes cluster kubectl
	pod container workload
	container docker
	node machine server host
	virtual_machine instance machine compute server
	replica scale
	scale resize
	drain evict cordon
	namespace project
	manifest yaml
	helm chart
	registry image
	log output trace
	trace span apm
	metric timeseries measurement
	dashboard panel
	alert alarm incident
	incident outage downtime
	downtime maintenance
	mute silence snooze
	uptime available health
	health status ping
	performance latency speed slow
	cpu memory load
	disk storage volume
	bucket blob storage
	object file blob
	cache redis
	queue servicebus
	kv key_value
	database sql
	sql query statement
	table schema
	record row document
	column field
	collection table
	index key
	migration schema
	transaction rollback
	backup snapshot dump
	domain dns hostname zone
	certificate ssl tls https
	firewall security_group
	ip address
	proxy vpn
	secret credential password token key
	permission access role grant
	role rbac
	login authentication signin session
	logout signout
	cost billing price spend
	usage consumption quota
	quota limit
	timer schedule
	webhook callback subscription
	process pid
	terminal shell console command
	command cmd
	configuration setting preference option

	# people and messages
	user member person people account
	member participant attendee
	team group
	group channel
	organization company
	channel room chat conversation
	message chat email
	direct_message message
	sms message
	thread reply
	reaction emoji
	mailbox inbox email
	rule filter
	signature footer
	contact person
	profile account
	telephone call dial
	call conference
	voicemail recording
	status presence
	whoami viewer current_user

	# calendar and office
	calendar schedule
	meeting event appointment
	attendee guest invitation
	available freebusy
	spreadsheet workbook worksheet sheet
	cell range
	chart graph plot diagram
	diagram flowchart
	document page file
	page article
	wiki page documentation confluence
	knowledge documentation article
	notebook note onenote
	slide presentation
	form survey questionnaire
	template boilerplate
	pdf document
	drive file onedrive
	directory path
	tree hierarchy

	# charts
	pie proportion
	histogram distribution frequency
	scatter correlation
	line trend
	fishbone cause
	venn overlap
	funnel conversion
	sankey flow
	treemap hierarchy
	gantt timeline

	# browser and web
	website web url
	webpage page url
	link url
	tab page window
	navigate goto visit
	click press tap
	form field
	dropdown select option
	dialog popup modal alert prompt
	scroll swipe
	hover mouse
	screenshot capture snapshot
	html dom markup
	console devtools
	javascript script
	cookie session
	network request http
	emulate simulate
	internet web online
	news headline
	paper article publication research
	similar related
	favorite bookmark

	# sales and money
	customer client
	lead prospect contact
	deal opportunity
	company business account
	invoice bill
	payment charge transaction
	refund reimbursement
	subscription membership plan
	discount coupon promotion voucher
	order purchase
	product item
	inventory stock
	shipment delivery fulfillment
	cart basket
	dispute chargeback
	payout transfer
	balance credit
	stock share ticker equity
	currency exchange forex
	crypto bitcoin ethereum coin
	tax vat
	expense receipt
	support helpdesk

	# places and home
	map location
	location place address
	place business shop store restaurant poi
	near nearby local around
	route direction navigation
	distance travel_time matrix
	geocode coordinate address
	weather forecast temperature
	flight airline plane
	hotel accommodation lodging
	light lamp bulb
	thermostat heating temperature climate
	door lock
	sensor motion

	# media
	image photo
	video clip movie film
	song music track audio
	playlist album
	volume loudness
	speech voice audio
	caption subtitle
	font typography style
	draw sketch
	design figma
	frame artboard
	model llm
	embedding vector semantic
	prompt instruction
	inference completion
	language translate
`

// asked lists what people say and the words of tools that answer to it; not the
// other way round.
const asked = `
	# acts
	allow let_in give_access: grant access permission share
	answer: reply respond
	ask: query chat prompt
	block ban: deny filter remove
	boot spin_up bring_up: create start
	bring bring_in bring_into: invite add move
	bring_back: restore unarchive
	buy: purchase order create
	calculate: sum evaluate compute
	call_off: cancel delete
	cancel: delete
	check_off tick cross_off mark_done: complete done update
	choose pick: select
	collapse squash: merge
	connect talk_to: link integrate
	cut shorten: trim summarize
	decide: memory note
	detect: find analyze
	discover: search list
	empty wipe: clear purge delete
	expose: forward publish
	faster speed_up: performance optimize index
	fill_in fill_out: fill form
	find_out look look_up look_for search_for: search find get
	fire kick_off: trigger start run
	forget: delete
	get_rid throw_away throw_out take_out: delete remove discard
	give_back return: refund release
	go_back: back previous revert
	hand pass_on: forward transfer assign
	hand_over take_over: transfer assign ownership
	hear listen: play audio
	hide: archive mute
	hire onboard: create invite
	hoover mop: vacuum clean
	introduce: blame bisect
	investigate: analyze search log
	jot write_down: note create add
	kick_out kick: remove delete
	learn: memory store documentation
	lock_down: protect restrict
	log_in sign_in: login authentication
	log_out sign_out: logout
	lose: recover restore
	make_sure: verify check validate
	mention ping: message notify
	open: create navigate
	order: purchase
	overwrite: write update
	pay: checkout
	post: create
	postpone put_off: reschedule snooze update
	print: pdf export
	put_in: insert add
	put_into: add move
	reach: access forward
	refresh: reload update
	rename: update
	replace swap: update edit
	report: analyze summary export
	reschedule: update move
	ring: call
	roll_back: rollback revert undo restore
	roll_out ship: deploy release rollout
	rsvp: respond accept decline
	save: create write store
	say aloud read_aloud: speech tts
	see: get list view
	sell: deal order
	set_up: create configure install setup schedule
	share: invite
	shelve: stash
	show_me give_me tell_me: get list show
	shrink enlarge: resize scale
	shut_down tear_down turn_down: stop delete terminate
	sign_up: register create
	snap: capture screenshot snapshot
	squeeze: compress
	star: favorite
	store: product put save memory
	sum: add total aggregate
	switch: select change checkout use context
	switch_off turn_off: disable stop
	switch_on turn_on: enable start
	talk discuss: conversation message call meeting
	throttle: limit rate
	touch: blame
	try_out: test
	turn_into: convert
	visualize draw: chart diagram graph generate
	wake: alarm call
	warn: alert monitor notify
	work_progress: draft stash
	write: create send update

	# questions
	after_while: schedule
	after_each every_day every_hour every_morning every_night every_week hourly daily nightly weekly: schedule cron recurring
	best_practices: recommendation advisor
	close_by near_me: nearby local search place category
	currently right_now: active
	how_big how_large: size storage count
	how_far: distance
	how_fast: performance velocity speed
	how_high how_tall: height elevation
	how_long: duration time distance
	how_many: count number total statistics
	how_much: cost price balance usage
	how_often how_frequent: frequency count histogram
	how_to: documentation
	is_alive is_down is_up: status health incident
	root_cause: analyze error debug
	went_wrong wrong: error incident failure
	what_changed what_new: diff history changelog release notes
	what_time: time timezone current
	where_am where_is: location geocode search
	who_am: whoami current user viewer authenticated self
	who_approved who_reviewed: reviewer approval state
	who_can who_has who_may: permission access member
	who_changed who_edited who_last who_touched who_wrote: blame history author
	who_did who_worked: activity history audit worklog
	who_is: user profile member
	why_did why_does: log error failure analyze

	# products
	jira trello asana monday clickup linear: issue ticket task board
	slack discord telegram whatsapp mattermost teams: message channel chat
	gmail outlook: email inbox
	dropbox google_drive onedrive: drive file
	google_docs word: document
	airtable google_sheets: spreadsheet table record
	confluence notion: page wiki
	zoom: meeting
	stripe paypal: payment invoice
	quickbooks xero: invoice expense
	salesforce hubspot: crm deal contact
	shopify woocommerce: order product
	zendesk intercom: ticket helpdesk support
	jenkins travis: pipeline build job
	pagerduty opsgenie: incident on_call alert
	grafana: dashboard metric
	prometheus: metric query alert
	splunk kibana elasticsearch: log search
	terraform: infrastructure plan
	ec2 droplet vps: virtual_machine instance compute
	s3 gcs azure_blob: bucket object storage
	bigquery redshift snowflake: sql query table
	spotify: music playback playlist
	youtube vimeo: video
	twitter mastodon bluesky: post tweet
	chatgpt openai claude gemini: model prompt completion
	bing google: search web

	# planning and code
	api_key: key token secret credential
	assets: file image
	backlog_item: issue story
	blocked blocker: relation link dependency
	build_failure build_log: log failure job output
	child_issue: subtask
	code_search: search code
	collaborator: member user
	crash_report: error exception
	dotenv env_file: environment variable
	feature_request: customer need request feedback
	green: passed status
	kill_switch: flag
	line_code: blame
	nightly_build: pipeline schedule
	percentage rollout: flag targeting update
	postmortem: incident
	red: failure
	source_code: code repository file
	stack_trace stacktrace: error exception event
	story_points: estimate
	uncommitted unstaged: status reset stash diff

	# machines and operations
	anomaly: metric alert monitor
	autoscale: scale
	bash zsh powershell: shell command terminal
	box: machine server
	connection_string dsn: connection url
	crashed: error exception
	database_user db_user: role user
	disk_space free_space space: prune storage disk clean
	execution_plan query_plan: explain
	gpu ram: memory compute
	bigger larger smaller: resize scale size
	lb load_balancer: network
	load_time page_load: performance
	localhost: local port forward
	memory_leak: heap snapshot
	oncall pager: incident schedule
	p95 p99 spike: metric latency
	port: forward
	region: location zone
	rows: query table
	slow_query slow: explain performance advisor trace
	traffic visitor: analyze session rum

	# people and messages
	auto_reply autoresponder: automatic reply mailbox settings vacation responder
	boss colleague coworker teammate friend: user member person
	employee staff: user member
	engineer developer: user member
	folks guys: people user member
	followers: user
	headcount: count member
	inbox: message list
	junk: spam filter directory
	knowledge_graph: entity relation observation node
	fact: observation memory entity
	newsletter spam: email rule unsubscribe filter
	notes: memory
	out_office ooo away holiday vacation: automatic responder mailbox settings presence
	thumbs_up: reaction emoji approve
	heart: reaction favorite
	unread: notification message mark

	# calendar and office
	agenda: calendar event
	alarm_clock: alarm cron
	brainstorm: mind map
	contents: read get list
	csv tsv: spreadsheet export import table
	dates: calendar
	docs guide handbook manual tutorial: documentation
	groceries shopping_list: todo task list
	heatmap: chart map
	highlighted marked: selection
	holidays leave: time_off vacation
	kpi: metric
	lunch dinner party: event calendar
	ocr scanned: text extract image
	org_chart: organization chart
	reminder: task todo event
	responses: form survey
	timeline: roadmap
	word_file: document docx
	bin recycle_bin: trash delete

	# browser and web
	accessibility lighthouse seo: audit
	cookies: browser storage
	dark_mode mobile_view: emulate
	hashtag: post search
	html_to_markdown: scrape
	laptop computer desktop: local device file
	latest newest: recent list
	popular trending: top
	viewport: resize
	webpage website: scrape crawl fetch

	# sales and money
	airfare plane_ticket: flight
	btc eth: crypto price
	cheap cheapest expensive: price cost
	usd eur gbp jpy chf cny dollar euro pound yen: currency exchange rate
	money cash: payment balance cost price amount
	charging charged: subscription payment
	earnings profit profitable revenue: financial income statement
	funds: balance
	happy: satisfaction feedback survey
	package parcel: shipment order tracking
	payroll salary: payment employee
	promo_code: coupon discount
	shares: stock quote price
	sku: product
	sold_out: stock inventory
	overdue unpaid: open invoice

	# places and home
	air_conditioning ac heater warm cold heat: thermostat temperature
	blinds garage tv: device
	bright dark: light brightness
	coffee cafe food eat pizza: restaurant place category poi
	commute eta: duration travel direction
	doorbell: camera
	gas_station parking: place search
	bicycle bike car foot: direction route
	journey trip drive driving walk walking cycling: direction route
	closest nearest: nearby search place
	postal postcode zip_code: address geocode
	rain snow sunny storm hurricane: weather forecast alert
	room: hotel
	smog pollution: air quality
	street town city: address place geocode
	shop: product

	# media
	loud louder quieter: volume
	palette: color style
	stopwatch countdown: timer
	thumbnail: image preview
`
