#pragma once

namespace longhaul {

// Gives access to a private member of a class of libtorch's that has no function for it: an explicit instantiation may
// name it. Used in this way, in a .cc (the instantiation in namespace longhaul itself):
//
//   struct Gamma {
//     using Member = const double torch::optim::StepLR::*;
//     friend Member member_of(Gamma);
//   };
//   template struct PrivateMember<Gamma, &torch::optim::StepLR::gamma_>;
//
//   scheduler.*member_of(Gamma())
template <typename Tag, typename Tag::Member member>
struct PrivateMember {
  friend typename Tag::Member member_of(Tag) { return member; }
};

}  // namespace longhaul
