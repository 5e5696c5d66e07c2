const state = { asked: 0, big: 2n ** 64n }; // is still there after the restore
text("before");
state.asked++;
const answer = await tools.ask_person({ question: "now?" });
text("after: " + answer.question);
return { asked: state.asked, big: String(state.big + 1n), answer };
